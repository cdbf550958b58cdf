package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// columns are the peers of the summary. Bare is what ratios refer to.
var columns = []struct{ peer, title string }{
	{"cat", "`cat`"},
	{"floor-echo", "bare Go line loop"},
	{"floor-hybrid-lf", "hand-written scanner, leader and follower"},
	{"jrpc2-line", "jsonrpc2 Conn, line codec"},
	{"mcpgo", "mcp-go 1.2.1"},
	{"gosdk", "go-sdk 1.8.0"},
	{"ts1", "TS SDK 1.32"},
	{"ts2", "TS server 2.4"},
	{"ours", "our engine"},
	{"fabro", "`fabro`"},
}

const barePeer = "floor-echo"

// right says how each odd input may be answered (the text that brief makes). What
// the specification leaves open accepts every reading.
var right = map[string]string{
	"malformed: truncated object":        `-32700`,
	"malformed: not JSON":                `-32700`,
	`valid JSON, no message: {"foo":1}`:  `-32600`,
	"valid JSON, no message: 42":         `-32600`,
	"no jsonrpc member":                  `-32600`,
	"jsonrpc 1.0":                        `-32600`,
	"params is an array":                 `-3260[02]`,
	"batch of 2 pings":                   `-32600`,
	"empty batch":                        `-32600`,
	"invalid UTF-8 in a string":          `(-32700|ok)`,
	"lone surrogate escape":              `(-32700|ok)`,
	"NUL escape":                         `ok`,
	"id null":                            `(-32600|silent)`,
	"id 1.5":                             `(-32600|silent)`,
	"id 1.0":                             `(-32600|silent|ok \(id 1(\.0)?\))`,
	"id -1":                              `ok \(id -1\)`,
	"id 0":                               `ok \(id 0\)`,
	"id 2^53+1":                          `ok \(id 9007199254740993\)`,
	"id 12345678901234567890":            `ok \(id 12345678901234567890\)`,
	"id empty string":                    `ok \(id ""\)`,
	"id true":                            `-32600`,
	"id {}":                              `-32600`,
	"duplicate ids, both in flight":      `ok \(id 5\)`,
	"duplicate ids, one after the other": `ok \(id 5\), ok \(id 5\)`,
	"unknown method":                     `-32601 \(id 1\)`,
	"empty method":                       `-3260[01] \(id 1\)`,
	"unknown notification":               `silent`,
	"stray response":                     `silent`,
	"unknown tool":                       `(-32602|isError) \(id 1\)`,
	"tools/call without params":          `-32602 \(id 1\)`,
	"tool args: wrong type":              `(-32602|isError) \(id 1\)`,
	"tool args: required missing":        `(-32602|isError) \(id 1\)`,
	"tool args: unknown property":        `(-32602|isError|ok) \(id 1\)`,
	"member names in other case":         `-32600`,
	"duplicate member method":            `-32(600|700)`,
	"blank line":                         `(silent|-32700)`,
	"CRLF line end":                      `ok \(id 1\)`,
	"leading BOM":                        `ok \(id 1\)`,
	"two messages on one line":           `-32700`,
	"message split over two lines":       `-32700`,
	"100 000 nested arrays in params":    `(-32|isError|ok)`,
	"ping before initialize":             `ok \(id 1\)`,
	"tools/list before initialize":       `(-326|long line)`,
	"tools/call before initialize":       `(-326|ok)`,
	"initialize twice":                   `(-32600|ok) \(id 2\)`,
	"initialize with an unknown version": `(ok|-32602) \(id 1\)`,
	"initialize without params":          `-32602 \(id 1\)`,
	"100 MB line, valid":                 `(ok|-326|isError)`,
	"100 MB line, garbage":               `(-32700|-32600)`,
}

// survived says whether a peer gave a right answer and a ping's answer after it.
func survived(r rec) bool {
	pattern, ok := right[r.s("case")]
	alive, _ := r["alive"].(bool)
	return ok && alive && regexp.MustCompile(`^`+pattern).MatchString(r.s("answer"))
}

// summary prints the medians of the series in a file as one table, and the ratio to
// the bare loop where a goal is one.
func summary(file string) {
	f, err := os.Open(file)
	must(err)
	defer f.Close()
	var recs []rec
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var r rec
		if json.Unmarshal(sc.Bytes(), &r) == nil && !disturbed(r) {
			recs = append(recs, r)
		}
	}
	median := func(peer, kind, field string, match map[string]any) float64 {
		var v []float64
		for _, r := range recs {
			if r.s("k") != kind || r.s("peer") != peer {
				continue
			}
			fits := true
			for k, want := range match {
				fits = fits && r[k] == want
			}
			if x, ok := r[field].(float64); ok && fits {
				v = append(v, x)
			}
		}
		return med(v)
	}
	type cell func(peer string) string
	value := func(kind, field string, divide float64, match map[string]any) cell {
		return func(peer string) string {
			x := median(peer, kind, field, match)
			if x < 0 {
				return "-"
			}
			text := num(x / divide)
			if base := median(barePeer, kind, field, match); base > 0 && peer != barePeer {
				text += " (" + ratio(x, base) + ")"
			}
			return text
		}
	}
	pair := func(a, b cell) cell {
		return func(peer string) string {
			if a(peer) == "-" {
				return "-"
			}
			return a(peer) + " / " + b(peer)
		}
	}
	what := func(s string) map[string]any { return map[string]any{"what": s} }
	flow := func(s string) map[string]any { return map[string]any{"what": s, "burst": false} }
	arg := map[string]any{"mib": 16.0, "dir": "arg"}
	failed := func(c cell) cell {
		return func(peer string) string {
			for _, r := range recs {
				if r.s("k") == "large" && r.s("peer") == peer && r.f("mib") == 16 && r.s("dir") == "arg" && r.s("err") != "" {
					return "fails: " + r.s("exit")
				}
			}
			return c(peer)
		}
	}
	count := func(peer string) string {
		n, all := 0, 0
		for _, r := range recs {
			if _, known := right[r.s("case")]; r.s("k") == "robust" && r.s("peer") == peer && known {
				all++
				if survived(r) {
					n++
				}
			}
		}
		if all == 0 {
			return "-"
		}
		return fmt.Sprintf("%d of %d", n, all)
	}
	drained := func(peer string) string {
		n, seen := 0.0, false
		for _, r := range recs {
			if r.s("k") == "robust" && r.s("peer") == peer && strings.HasPrefix(r.s("case"), "EOF ") {
				n, seen = n+max(0, r.f("n")), true
			}
		}
		if !seen {
			return "-"
		}
		return num(n)
	}
	rows := []struct {
		title string
		cell  cell
	}{
		{"cold start to tools/list, ms", value("cold", "list_ms", 1, nil)},
		{"ping round trip p50, µs", value("seq", "p50_us", 1, what("ping"))},
		{"tools/call echo p50, µs", value("seq", "p50_us", 1, what("echo"))},
		{"tools/call echo p99, µs", value("seq", "p99_us", 1, what("echo"))},
		{"tools/call echo, 64 in flight, /s", value("thr", "rps", 1, flow("echo"))},
		{"tools/list (8 real schemas), 16 in flight, /s", value("thr", "rps", 1, flow("list"))},
		{"run_create with 5.4 KB of arguments, 8 in flight, /s", value("thr", "rps", 1, flow("run_create"))},
		{"16 MiB argument, ms", failed(value("large", "ms", 1, arg))},
		{"16 MiB argument, peak MiB", failed(value("large", "hwm_kb", 1024, arg))},
		{"memory at rest, MiB", value("mem", "idle_rss", 1024, nil)},
		{"memory peak in 100k calls, MiB", value("mem", "run_hwm", 1024, nil)},
		{"allocations per echo / ping / list", pair(value("alloc", "allocs", 1, what("echo")), pair(value("alloc", "allocs", 1, what("ping")), value("alloc", "allocs", 1, what("list"))))},
		{"odd inputs survived with a right answer", count},
		{"200 fast + 5 slow calls answered at end of input", drained},
	}
	head := []string{"measure"}
	for _, c := range columns {
		head = append(head, c.title)
	}
	var out [][]string
	for _, r := range rows {
		line := []string{r.title}
		for _, c := range columns {
			line = append(line, r.cell(c.peer))
		}
		out = append(out, line)
	}
	table(head, out)
}
