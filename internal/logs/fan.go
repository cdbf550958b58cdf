package logs

import (
	"context"
	"errors"
	"log/slog"
)

// fan hands each record to several handlers.
type fan []slog.Handler

func (f fan) Enabled(ctx context.Context, level slog.Level) bool {
	for _, h := range f {
		if h.Enabled(ctx, level) {
			return true
		}
	}
	return false
}

func (f fan) Handle(ctx context.Context, r slog.Record) error {
	var errs []error
	for _, h := range f {
		if h.Enabled(ctx, r.Level) {
			errs = append(errs, h.Handle(ctx, r.Clone()))
		}
	}
	return errors.Join(errs...)
}

func (f fan) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make(fan, len(f))
	for i, h := range f {
		out[i] = h.WithAttrs(attrs)
	}
	return out
}

func (f fan) WithGroup(name string) slog.Handler {
	out := make(fan, len(f))
	for i, h := range f {
		out[i] = h.WithGroup(name)
	}
	return out
}
