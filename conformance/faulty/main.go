// Command faulty is an MCP server that can be told to break one rule: the proof that the
// suites catch what they claim to catch. Without a fault it is a small, right server of all
// five revisions, written with the standard library alone and sharing no code with the
// harness that judges it.
//
//	mcp-conformance run -- faulty -fault answers-twice
//	faulty -list
//
// faults.go holds the table: what each fault does, the requirement that must be found
// broken, and what else may be found because of it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	list := flag.Bool("list", false, "print the faults and leave")
	name := flag.String("fault", "", "the fault to have")
	flag.Parse()
	if *list {
		printFaults(os.Stdout)
		return
	}
	if *name != "" && findFault(*name) == nil {
		fmt.Fprintf(os.Stderr, "faulty: no fault %q; faulty -list prints them\n", *name)
		os.Exit(2)
	}
	serve(*name)
}

func printFaults(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range faults {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", f.name, f.breaks, f.does)
	}
	tw.Flush()
}
