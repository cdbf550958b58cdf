package workflow

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// TOMLFault is what is wrong with a TOML file, in words of TOML.
type TOMLFault struct {
	Line, Column int // from 1; 0 when unknown
	Key          string
	Message      string // without place and key
}

// tomlMismatch matches what the decoder says of a value of the wrong type, in words
// of Go.
var tomlMismatch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^cannot (?:decode TOML|store an?) (.+?) (?:into|in a) (?:.* of type )?(\S.*)$`)
})

// TOMLFaultOf turns an error of the TOML decoder into what its user needs. Errors of
// others are their own message.
func TOMLFaultOf(err error) TOMLFault {
	fault := TOMLFault{Message: strings.TrimPrefix(err.Error(), "toml: ")}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		fault.Message = strings.TrimPrefix(decode.Error(), "toml: ")
		fault.Line, fault.Column = decode.Position()
		fault.Key = strings.Join(decode.Key(), ".")
	}
	if m := tomlMismatch().FindStringSubmatch(fault.Message); m != nil {
		fault.Message = "must be " + tomlType(m[2]) + ", not " + aNoun(m[1])
	}
	return fault
}

// tomlType names what a Go type takes.
func tomlType(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]string"):
		return "an array of strings"
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	case strings.HasPrefix(goType, "struct"), strings.HasPrefix(goType, "map"):
		return "a table"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "an integer"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a string"
	}
	return "something else"
}

func aNoun(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
