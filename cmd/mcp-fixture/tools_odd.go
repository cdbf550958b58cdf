package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"fabro-mcp/protocol"
)

const millis = `{"type":"object","properties":{"ms":{"type":"integer","minimum":0,"maximum":600000}},"additionalProperties":false}`

func millisOf(c *call) time.Duration {
	in, _ := arguments[struct {
		MS int `json:"ms"`
	}](c)
	return time.Duration(in.MS) * time.Millisecond
}

// oddTools do what servers have broken on.
func (f *fixture) oddTools() []protocol.Tool {
	return []protocol.Tool{
		{
			Name: "slow", Description: "Waits so many milliseconds; stops when it is cancelled.", InputSchema: json.RawMessage(millis),
			Call: func(ctx context.Context, c *call) (*result, error) { return text("done"), pause(ctx, millisOf(c)) },
		},
		{
			Name: "slow_counter", Description: "Waits so many milliseconds, then counts up.", InputSchema: json.RawMessage(millis),
			Call: func(ctx context.Context, c *call) (*result, error) {
				if err := pause(ctx, millisOf(c)); err != nil {
					return nil, err
				}
				return text(fmt.Sprint(f.counter.Add(1))), nil
			},
		},
		{
			Name: "wait", Description: "Waits so many milliseconds, or until the input ends, and says which; counts as waiting, not as work.", InputSchema: json.RawMessage(millis), Waits: true,
			Call: func(ctx context.Context, c *call) (*result, error) {
				select {
				case <-time.After(millisOf(c)):
					return text("waited"), nil
				case <-c.InputClosed():
					return text("the input ended"), nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			},
		},
		{
			Name: "hang", Description: "Waits so many milliseconds (600000 where absent), whatever happens.", InputSchema: json.RawMessage(millis),
			Call: func(_ context.Context, c *call) (*result, error) {
				d := millisOf(c)
				if d == 0 {
					d = 10 * time.Minute
				}
				time.Sleep(d)
				return text("done"), nil
			},
		},
		{
			Name: "panics", Description: "Panics.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) { panic("a deliberate panic") },
		},
		{
			Name: "fails_with_schema", Description: "Fails, although it has an output schema.", InputSchema: noArguments,
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			Call: func(context.Context, *call) (*result, error) {
				return nil, errors.New("this tool always fails; nothing was changed")
			},
		},
		{
			Name: "breaks_schema", Description: "Returns what its output schema forbids.", InputSchema: noArguments,
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			Call: func(context.Context, *call) (*result, error) {
				return &result{Structured: map[string]string{"n": "no"}}, nil
			},
		},
		{
			Name: "empty", Description: "Returns nothing.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) { return &result{}, nil },
		},
		{
			Name: "noisy", Description: "Writes a kilobyte to standard error.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				f.logger.Warn(strings.Repeat("noise ", 170))
				return text("ok"), nil
			},
		},
		{
			Name: "noisy_slow", Description: "Writes to standard error while it waits.", InputSchema: json.RawMessage(millis),
			Call: func(ctx context.Context, c *call) (*result, error) {
				for end := time.Now().Add(millisOf(c)); time.Now().Before(end); {
					f.logger.Warn(strings.Repeat("noise ", 170))
					if err := pause(ctx, 10*time.Millisecond); err != nil {
						return nil, err
					}
				}
				return text("ok"), nil
			},
		},
		{
			Name: "prints", Description: "Prints to standard output in every way it knows, itself and through a child.", InputSchema: noArguments,
			Call: func(ctx context.Context, _ *call) (*result, error) {
				fmt.Println("printed by fmt")
				os.Stdout.WriteString("written to os.Stdout\n")
				println("printed by the runtime")
				if shell, err := exec.LookPath("sh"); err == nil {
					cmd := exec.CommandContext(ctx, shell, "-c", "echo printed by a child; cat")
					cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
					if err := cmd.Run(); err != nil {
						return nil, err
					}
				}
				return text("printed"), nil
			},
		},
		{
			Name: "run", Description: "Runs a shell command and returns what it prints. It gets no input.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"],"additionalProperties":false}`),
			Call: func(ctx context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Cmd string `json:"cmd"`
				}](c)
				if err != nil {
					return nil, err
				}
				var out bytes.Buffer
				cmd := exec.CommandContext(ctx, "sh", "-c", in.Cmd)
				cmd.Stdout, cmd.Stderr = &out, &out
				cmd.WaitDelay = time.Second
				if err := cmd.Run(); err != nil {
					return nil, fmt.Errorf("%s: %w", strings.TrimSpace(out.String()), err)
				}
				return text(out.String()), nil
			},
		},
		{
			Name: "ticker", Description: "Leaves a goroutine running that never ends.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				go func() {
					for range time.Tick(10 * time.Millisecond) {
						f.counter.Load()
					}
				}()
				return text("ticking"), nil
			},
		},
	}
}
