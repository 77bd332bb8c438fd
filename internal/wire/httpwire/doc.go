// Package httpwire holds what every HTTP face of AOD needs, each thing once: bounded
// bodies, whose bytes count at a bytegate, forms part by part, the members of a JSON object by their exact
// names, problems (RFC 9457) in both directions, idempotency keys, run ids, durations,
// server-sent events in both directions, a server that drains before it ends, and a
// client's transport.
//
// Errors are faults. Their messages may be shown to a client and hold no payload.
//
// It imports bytegate, fault, lazyregexp and strictjson, and nothing else of ours. It knows no route, no unit and
// no run, and it decides no status code: the table of package fault does.
package httpwire
