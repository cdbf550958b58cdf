package main

import (
	"time"

	"fabro-mcp/internal/embedded"
)

// duration reads what people type, as embedded.toml does: 50s, 10m, 12h, 30d, 2w.
type duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = embedded.ParseAge(string(text))
	return err
}
