package fabroapi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pelletier/go-toml/v2"

	"fabro-mcp/internal/workflow"
)

// clientSettings is the part of settings.toml that a client obeys. Everything
// else in the file belongs to Fabro and is not looked at.
type clientSettings struct {
	CLI struct {
		Target struct {
			Type string `toml:"type"`
			URL  string `toml:"url"`
			Path string `toml:"path"`
		} `toml:"target"`
	} `toml:"cli"`
	Server struct {
		Storage struct {
			Root string `toml:"root"`
		} `toml:"storage"`
	} `toml:"server"`
}

// maxSettingsBytes bounds a settings file; real ones are a few KiB.
const maxSettingsBytes = 4 << 20

// readSettingsFile returns the text of a settings file, or nil when there is no
// regular file of that name.
func readSettingsFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err == nil && info.Size() > maxSettingsBytes {
		err = fmt.Errorf("file has %d bytes, more than %d", info.Size(), maxSettingsBytes)
	}
	var data []byte
	var text string
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		text, err = workflow.Text(data)
	}
	if err != nil {
		return nil, fmt.Errorf("reading config file %s: %w", path, err)
	}
	return []byte(text), nil
}

func readClientSettings(path string) (clientSettings, error) {
	var settings clientSettings
	text, err := readSettingsFile(path)
	if err != nil || text == nil {
		return settings, err
	}
	if err := toml.Unmarshal(text, &settings); err != nil {
		return clientSettings{}, settingsError(path, err)
	}
	return settings, nil
}

// settingsError says where a settings file is broken without quoting the line:
// it may hold a secret.
func settingsError(path string, err error) error {
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		fault := workflow.TOMLFaultOf(err)
		if fault.Key != "" {
			fault.Key += ": "
		}
		return fmt.Errorf("Failed to parse settings file at %s:%d:%d: settings file is not valid TOML: %s", path, fault.Line, fault.Column, Redact(fault.Key+fault.Message))
	}
	return fmt.Errorf("Failed to parse settings file at %s: settings file is not valid TOML: %s", path, Redact(err.Error()))
}

// target returns the server that [cli.target] names, or the zero Target.
func (s clientSettings) target(path string) (Target, error) {
	t := s.CLI.Target
	where := func(err error) error { return fmt.Errorf("[cli.target] of %s: %w", path, err) }
	switch t.Type {
	case "":
		if t.URL != "" || t.Path != "" {
			return Target{}, where(errors.New(`cli.target.type: field is required ("http" or "unix")`))
		}
		return Target{}, nil
	case "http":
		if t.URL == "" {
			return Target{}, where(errors.New("cli.target.url: field is required"))
		}
		target, err := ParseTarget(t.URL)
		if err != nil {
			return Target{}, where(err)
		}
		if target.IsUnix() {
			return Target{}, where(fmt.Errorf("cli.target.url: invalid value - %q is no http(s) URL", Redact(t.URL)))
		}
		return target, nil
	case "unix":
		if t.Path == "" {
			return Target{}, where(errors.New("cli.target.path: field is required"))
		}
		target, err := ParseTarget(t.Path)
		if err != nil {
			return Target{}, where(err)
		}
		if !target.IsUnix() {
			return Target{}, where(fmt.Errorf("cli.target.path: invalid value - %q is no absolute path", Redact(t.Path)))
		}
		return target, nil
	}
	return Target{}, where(fmt.Errorf(`cli.target.type: invalid value - %q, expected "http" or "unix"`, t.Type))
}
