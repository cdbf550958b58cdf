package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedCommands holds every `fabro …` of README and docs against the
// program: the command exists and has the flags that the text gives it.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md", "../../examples/README.md")
	span := regexp.MustCompile("`+(fabro [^`\n]+)`+")
	line := regexp.MustCompile(`(?m)^(fabro [^#\n]+)`)
	word := regexp.MustCompile(`^[a-z][a-z-]*$`)
	helps := map[string]string{}
	help := func(words []string) (string, bool) {
		key := strings.Join(words, " ")
		if text, ok := helps[key]; ok {
			return text, text != ""
		}
		out, err := exec.Command(binary, append(slices.Clone(words), "--help")...).CombinedOutput()
		if err != nil {
			out = nil
		}
		helps[key] = string(out)
		return string(out), err == nil
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, m := range append(span.FindAllStringSubmatch(string(text), -1), line.FindAllStringSubmatch(string(text), -1)...) {
			commands = append(commands, m[1])
		}
		for _, command := range commands {
			// Subcommands are one or two words deep; an argument may look like a third.
			fields := strings.Fields(command)[1:]
			var words []string
			for _, f := range fields {
				if !word.MatchString(f) || len(words) == 2 {
					break
				}
				words = append(words, f)
			}
			text, ok := help(words)
			if !ok && len(words) == 2 {
				text, ok = help(words[:1])
			}
			if !ok {
				t.Errorf("%s: no such command: %s", page, command)
				continue
			}
			for _, f := range fields {
				flag, _, _ := strings.Cut(f, "=")
				if strings.HasPrefix(flag, "--") && !strings.Contains(text, flag) {
					t.Errorf("%s: %s: no flag %s", page, command, flag)
				}
			}
		}
	}
}
