// Package hosts knows the configuration files of MCP hosts: where each host
// keeps them, and how to put one server entry into one without disturbing
// anything else.
//
// A host's file belongs to its user. Edit therefore parses before it changes
// anything, refuses what it does not understand, changes the one member it was
// asked to change and leaves every other byte alone; Write replaces the file in
// one rename. The package imports nothing else of this module.
package hosts
