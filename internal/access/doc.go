// Package access knows who may ask a server for what: scopes, and tokens with names.
//
// A token is 260 random bits. Its holder alone has it: the file of a Tokens has its SHA-256.
// A slow hash, as for passwords, would protect nothing: nobody can try 2^260 tokens.
//
// The main path, in call order:
//
//	Tokens.Add (tokens.go)    makes a token, and stores what is known of it
//	Tokens.Find (tokens.go)   whose token this is; the file counts as it is at that moment
//	Grant.Allows (scope.go)   whether its holder may do something
//	WithGrant (client.go)     has a request's context name the token's holder
//	Sees (client.go)          whether that holder may know of what another one made
//
// It must not know requests, nor what the scopes protect.
package access
