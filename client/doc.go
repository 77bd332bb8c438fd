// Package client speaks to a server of AOD (`aod serve`) over HTTP.
//
// The main path, in call order: New checks the address; Submit starts a run, its files
// streamed; Events follows it to its end, over lost connections; Run returns its record;
// Download fetches its files.
//
// A server's refusal comes back as the *fault.Error that the server made. One that does
// not answer is an Unavailable fault, and what may be asked again safely is asked again
// a few times before that. The end of a context is the context's own error.
//
// The server is not trusted: its answers are bounded, its files are held against their
// sizes and digests, its names never lead out of a directory, and its redirects are
// refused, so that the token goes to nobody else. Texts of runs (logs, messages, names)
// are handed on as they come: whoever shows them on a terminal has to take out control
// characters.
//
// It must not know a terminal, or how a server is found.
package client
