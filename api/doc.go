// Package api is what goes over the wire of AOD's HTTP API (schemas/openapi.json): the
// record of a run, its events with their data, its log, submissions and their metadata,
// units and the pool. The same documents lie in a server's store, so their JSON only grows.
//
// It says how these things look and which names and texts they take. It knows nothing of
// how a run is made, of HTTP itself and of where anything is kept: whoever speaks with a
// server, the server included, can import it and gets nothing else with it.
package api
