// Package fabroapi is the client of Fabro's REST API: which server to talk to,
// with which credential, how to ask it, and how to build the manifest that a
// new run is created from.
//
// A program that serves requests holds one Connector and asks it for the Client
// whenever it needs one. Nothing is read or contacted before the first such
// call, and a failure is not remembered:
//
//	connector := &fabroapi.Connector{Server: flagServer, StartEmbedded: start}
//	client, err := connector.Connect(ctx)
//	run, err := client.ResolveRun(ctx, "release")
//
// Errors are sentences for a person and say what to do next. A program tells
// them apart with errors.Is (ErrLoginRequired, ErrNotFound, ErrUnreachable) and
// errors.As (*APIError). No error and no log line contains a credential.
//
// The package imports fabroapi/wire and internal/workflow; fabroapi/auth below
// it keeps logins.
package fabroapi
