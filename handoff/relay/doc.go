// Package relay connects a client of the Model Context Protocol with a server that runs in a sandbox. Messages are
// passed on as they are, both ways and in their order. Only the list of tools and their calls are looked at.
//
//	New                 a session, before there is a server
//	Session.Talk        the server's stdin and stdout
//	Session.FromClient  a message of the client's
//	Door                sessions over streamable HTTP
//	Ask                 a client of ours, for one question
//
// Session.FromClient, Session.fromServer (rules.go) are the two directions; a Door (door.go) needs its clients from
// outside.
//
// It must not know units, runs or sandboxes.
//
// Its Go API may change with every release: see docs/stability.md.
package relay
