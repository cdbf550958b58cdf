// Package workflow reads Fabro workflow files: a dialect of Graphviz's DOT in
// which nodes are stages and edges are the ways between them.
//
// The way of a workflow through this package:
//
//	Locate       a name or a path          → the graph file and its workflow.toml
//	BundleFiles  that location             → every file the graph refers to
//	Compile      such a bundle             → Parse → goal override → imports →
//	                                         @files → templates → scripts →
//	                                         stylesheet → lint
//
// A client bundles, a server compiles; neither needs the other's disk. Parse,
// ParseCondition, ParseStylesheet and the package template below can be used
// alone. Nothing here runs anything, waits for anything or keeps state: all
// functions are safe for concurrent use, and a Graph is as well as long as
// nobody changes it.
//
// Input is not trusted. Every parser is linear in its input and refuses what
// goes past its limits (nesting, size of the expanded graph, size of a rendered
// template) with an error that names the limit.
//
// This package imports nothing else of this module.
package workflow
