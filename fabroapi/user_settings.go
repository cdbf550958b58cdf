package fabroapi

import (
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// travellingTables are the tables of the user's settings.toml that concern a run.
// The rest (the client's own settings, a server's settings, provider keys) stays
// on this machine.
var travellingTables = [...]string{"run", "environments"}

// travellingSettings writes anew what of the user's settings travels with a
// manifest, or returns "" when nothing does. Line numbers are lost with it, so
// what a server says about these settings has to name the key.
func travellingSettings(path, source string) (string, error) {
	var all map[string]any
	if err := toml.Unmarshal([]byte(source), &all); err != nil {
		return "", settingsError(path, err)
	}
	kept := map[string]any{}
	for _, table := range travellingTables {
		if value, ok := all[table]; ok {
			kept[table] = value
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	text, err := toml.Marshal(kept)
	if err != nil {
		return "", settingsError(path, err)
	}
	return "_version = 1\n\n" + string(text), nil
}

// scmOrigin is the repository that [run.scm] of the settings names, as an
// address, or "". Sources come highest layer first.
func scmOrigin(sources ...string) string {
	var merged struct{ provider, owner, repository string }
	for _, source := range sources {
		var file struct {
			Run struct {
				SCM struct {
					Provider   string `toml:"provider"`
					Owner      string `toml:"owner"`
					Repository string `toml:"repository"`
				} `toml:"scm"`
			} `toml:"run"`
		}
		if toml.Unmarshal([]byte(source), &file) != nil {
			continue // bundling has reported it, or leaves it to the server
		}
		scm := file.Run.SCM
		for _, pair := range []struct {
			to   *string
			from string
		}{{&merged.provider, scm.Provider}, {&merged.owner, scm.Owner}, {&merged.repository, scm.Repository}} {
			if *pair.to == "" {
				*pair.to = pair.from
			}
		}
	}
	if merged.owner == "" || merged.repository == "" || merged.provider != "" && !strings.EqualFold(merged.provider, "github") {
		return ""
	}
	return "https://github.com/" + merged.owner + "/" + merged.repository
}
