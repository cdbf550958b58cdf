// Package recordclients holds `mcp-conformance record` to real clients: it sits
// between them and a server, and what it wrote must replay without a failure,
// ten times out of ten. It is a module of its own, so that the clients'
// dependencies stay out of the product's.
package recordclients
