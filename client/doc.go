// Package client speaks to a server of AOD (`aod serve`) over HTTP.
//
// The main path, in call order: New checks the address; Runs.Submit starts a run, its files
// streamed; Runs.Events follows it to its end, over lost connections; Runs.Get returns its
// record; Files.Download fetches its files.
//
// A server's refusal comes back as the *fault.Error that the server made. A server that
// doesn't answer is an Unavailable fault, after a few retries of requests that are safe to
// repeat. The end of a context is the context's own error.
//
// The server is not trusted: its answers are bounded, its files are checked against their
// sizes and digests, its names never lead out of a directory, and its redirects are
// refused, so that the token goes to no other server. Texts of runs (logs, messages,
// names) are returned unchanged: a caller that shows them on a terminal has to remove
// control characters.
//
// It must not know a terminal, or how a server is found.
package client
