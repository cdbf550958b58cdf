package main

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"fabro-mcp/internal/embedded"
)

// wait is how long something may take, typed by a person: 50s, 5m, 1h30m.
type wait struct{ time.Duration }

// Decode implements kong.MapperValue.
func (w *wait) Decode(ctx *kong.DecodeContext) (err error) {
	w.Duration, err = decodeDuration(ctx, "50s or 5m")
	return err
}

// age is how long ago something was: 12h, 30d, 2w.
type age struct{ time.Duration }

// Decode implements kong.MapperValue.
func (a *age) Decode(ctx *kong.DecodeContext) (err error) {
	a.Duration, err = decodeDuration(ctx, "12h or 30d")
	return err
}

// decodeDuration reads the value of a flag; examples are what makes sense there.
func decodeDuration(ctx *kong.DecodeContext, examples string) (time.Duration, error) {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return 0, err
	}
	d, err := embedded.ParseAge(text)
	if err != nil {
		return 0, fmt.Errorf("%w; write for example %s", err, examples)
	}
	return d, nil
}
