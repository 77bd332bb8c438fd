// Package httpapi serves an orchestrator.Service over HTTP.
//
// A request passes, in this order: paced (a client that is too slow is cut), record (the access log), recovered (a
// panic is a 500), guarded (Host and Origin), authorized (the token), bounded (time), and then its handler. Each file
// has the handlers of one noun, as a type: runHandlers, unitHandlers. routes.go has the table of the routes.
//
// A handler decodes, asks the Service and encodes. An error becomes an answer in answer.go and nowhere else, by the
// table of package fault. The API is described in schemas/openapi.json; a test checks the routes and their answers
// against it.
//
// The log holds nothing that a client sent, except ids of runs. This is the only package that imports Echo.
//
// Followers of one run share pages of its events, which end by their bytes; httpwire counts streams by token, bytegate
// what they hold.
//
// It must not know engines or the store.
//
// Its Go API may change with every release: see docs/stability.md.
package httpapi
