package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Flags that hold a list, with commas between its members or given several times.
// An empty list is refused: it comes of a variable that is not set, and what would
// be taken for no flag at all offers or allows more than was meant.

// toolNames are names of tools.
type toolNames []string

// Decode implements kong.MapperValue.
func (t *toolNames) Decode(ctx *kong.DecodeContext) error {
	return decodeList(ctx, (*[]string)(t), "name tools, for example fabro_run_get,fabro_run_search")
}

// toolsetNames are names of toolsets.
type toolsetNames []string

// Decode implements kong.MapperValue.
func (t *toolsetNames) Decode(ctx *kong.DecodeContext) error {
	return decodeList(ctx, (*[]string)(t), "name toolsets, for example runs,insight")
}

// directories are paths, absolute once they are decoded.
type directories []string

// Decode implements kong.MapperValue.
func (d *directories) Decode(ctx *kong.DecodeContext) error {
	known := len(*d)
	if err := decodeList(ctx, (*[]string)(d), "name a directory, for example . or /srv/project"); err != nil {
		return err
	}
	for i := known; i < len(*d); i++ {
		(*d)[i] = kong.ExpandPath((*d)[i])
	}
	return nil
}

// decodeList adds what a flag says to a list; advice is what to write instead of
// nothing.
func decodeList(ctx *kong.DecodeContext, list *[]string, advice string) error {
	var text string
	if err := ctx.Scan.PopValueInto("list", &text); err != nil {
		return err
	}
	members := kong.SplitEscaped(text, ctx.Value.Tag.Sep)
	for i := range members {
		members[i] = strings.TrimSpace(members[i])
	}
	if len(members) == 0 || slices.Contains(members, "") {
		return fmt.Errorf("%q is empty or has an empty member; %s, or leave the flag out", text, advice)
	}
	*list = append(*list, members...)
	return nil
}
