// Command fabro is the MCP server of Fabro, and a small command line beside it:
// the server for hosts (`fabro mcp start`), its entry in their configuration,
// single tool calls, the embedded Fabro server, and runs for people.
//
// This package parses flags, wires the rooms together and prints. What a command
// does is done elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/internal/hosts"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"
)

// Exit codes of every command.
const (
	exitOK    = 0
	exitError = 1 // the command failed, or a tool reported an error
	exitUsage = 2 // the command line does not say what to do
	exitLogin = 4 // the server wants a login: fabro auth login
)

// cli is the whole command line.
type cli struct {
	globals

	MCP         mcpCmd         `cmd:"" name:"mcp" help:"The MCP server, and its entry in the configuration of hosts."`
	Run         runCmd         `cmd:"" help:"Look at runs and answer them."`
	Server      serverCmd      `cmd:"" help:"The embedded Fabro server of this machine."`
	Auth        authCmd        `cmd:"" help:"Logins on Fabro servers."`
	Validate    validateCmd    `cmd:"" help:"Check a workflow and print what is wrong, as a compiler does."`
	Graph       graphCmd       `cmd:"" help:"Print the graph of a workflow."`
	Completions completionsCmd `cmd:"" help:"Print the line that switches on completion in a shell, for its startup file."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// startCLI is the command line of a host, which waits for `fabro mcp start`:
// building the parser of all commands takes longer than everything else it does
// before it serves.
type startCLI struct {
	globals

	MCP struct {
		Start mcpStartCmd `cmd:"" help:"Serve MCP on standard input and output. Hosts start this."`
	} `cmd:"" name:"mcp" help:"The MCP server, and its entry in the configuration of hosts."`
}

// model is the part of the command line that the arguments can mean, and the
// global flags in it.
func model(args []string) (any, *globals) {
	if len(args) >= 2 && args[0] == "mcp" && args[1] == "start" && os.Getenv("COMP_LINE") == "" {
		c := new(startCLI)
		return c, &c.globals
	}
	c := new(cli)
	return c, &c.globals
}

func main() {
	keepOwnRights()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	model, g := model(args)
	out := &checked{w: stdout}
	g.stdout, g.stderr = out, stderr
	exit := -1
	parser, err := kong.New(model,
		kong.Name("fabro"),
		kong.Description("Fabro for MCP hosts: create, find, watch, steer and answer workflow runs.\n\n"+
			"Start with `fabro mcp init claude`, or try a tool here: `fabro mcp call fabro_run_search '{}'`."),
		kong.Vars{"version": "fabro " + version()},
		kong.Writers(out, stderr),
		kong.Exit(func(code int) { exit = code; panic(exited{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // the structs above are wrong
	}
	parser.Model.HelpFlag.Help = "Print this help and exit."
	code := func() (code int) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(exited); !ok {
					panic(r)
				}
				code = exit
			}
		}()
		kongplete.Complete(parser, kongplete.WithPredictor("host", complete.PredictSet(hosts.Names()...)),
			kongplete.WithPredictor("shell", complete.PredictSet(slices.Sorted(maps.Keys(completionScripts))...)))
		if len(args) == 0 {
			args = []string{"--help"}
		}
		kctx, err := parser.Parse(args)
		if out.err != nil {
			return exitOK // --help could not be written; that is said below
		}
		if err != nil {
			return usageError(stderr, err)
		}
		kctx.BindTo(ctx, (*context.Context)(nil))
		return g.finish(kctx.Run(g))
	}()
	if err := out.failed(); err != nil && code == exitOK {
		complain(stderr, err)
		return exitError
	}
	return code
}

// exited unwinds from kong's idea of ending the process (after --help).
type exited struct{}

// usageError prints what is wrong with the command line and how to find out more.
func usageError(stderr io.Writer, err error) int {
	command := "fabro"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if path := parse.Context.Command(); path != "" {
			command += " " + strings.Join(words(path), " ")
		}
	}
	complain(stderr, plainer(err, parse, command))
	fmt.Fprintf(stderr, "Try `%s --help`.\n", command)
	return exitUsage
}

// plainer says in the words of the help what the parser says of a command or an
// argument that is missing or unknown. Other errors it returns as they are.
func plainer(err error, parse *kong.ParseError, command string) error {
	if parse == nil || parse.Context == nil {
		return err
	}
	node := parse.Context.Selected()
	if node == nil {
		node = parse.Context.Model.Node
	}
	var commands []string
	for _, child := range node.Children {
		if !child.Hidden {
			commands = append(commands, child.Name)
		}
	}
	text := err.Error()
	if word, ok := strings.CutPrefix(text, "unexpected argument "); ok && len(commands) > 0 {
		return fmt.Errorf("%s has no command %s", command, word)
	}
	missing, ok := strings.CutPrefix(text, "expected ")
	switch {
	case !ok:
	case len(commands) > 0:
		return fmt.Errorf("%s needs a command: %s", command, strings.Join(commands, ", "))
	default:
		for _, arg := range node.Positional {
			if strings.Contains(missing, arg.Summary()) {
				return fmt.Errorf("missing %s: %s", strings.Trim(missing, `"`), arg.Help)
			}
		}
	}
	return err
}

// words are the command's own words in a path such as "run show <run>".
func words(path string) []string {
	var out []string
	for _, w := range strings.Fields(path) {
		if !strings.HasPrefix(w, "<") {
			out = append(out, w)
		}
	}
	return out
}

// usage is an error of the command line that the parser cannot see.
type usage struct{ error }

// silent is a failure whose message has been printed already.
type silent struct{ code int }

func (s silent) Error() string { return fmt.Sprintf("exit code %d", s.code) }

// finish prints the error of a command and turns it into an exit code.
func (g *globals) finish(err error) int {
	var s silent
	var u usage
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return s.code
	case errors.As(err, &u):
		complain(g.stderr, err)
		return exitUsage
	}
	complain(g.stderr, err)
	if errors.Is(err, fabroapi.ErrLoginRequired) {
		return exitLogin
	}
	return exitError
}
