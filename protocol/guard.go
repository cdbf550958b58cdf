package protocol

import (
	"fmt"
	"runtime/debug"
)

// guard runs a program's own code: a panic becomes an internal error of the one
// request.
func guard[T any](r *request, f func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.conn.opts.Logger.Error("a handler panicked", "method", r.method.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &Error{Code: CodeInternal, Message: "Internal error"}
		}
	}()
	return f()
}
