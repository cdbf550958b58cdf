// Package realclients drives the built `fabro` binary with the clients of public
// MCP SDKs. It is a module of its own, so that their dependencies stay out of the
// product's.
package realclients
