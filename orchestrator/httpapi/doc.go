// Package httpapi serves an orchestrator.Service over HTTP.
//
// A request passes, in this order: paced (a client that is too slow is cut), record
// (the access log), recovered (a panic is a 500), guarded (Host and Origin),
// authorized (the token), bounded (time), and then its handler, of which each file
// has those of one noun. api.go has the table of the routes.
//
// A handler decodes, asks the Service and encodes. An error becomes an answer in
// problem.go and nowhere else, by the table of package fault. The document of the
// whole is schemas/openapi.json; a test holds the routes and their answers against it.
//
// Nothing that a client sent is logged, but for the ids of runs. This is the only
// package that imports Echo.
package httpapi
