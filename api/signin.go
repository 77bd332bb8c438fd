package api

import "time"

// SigninCode lets a browser sign in at the page of a server once, as the holder of the token with which it was asked
// for.
type SigninCode struct {
	Path      string     `json:"path"`       // of the server, to be opened; whoever has it may sign in
	ExpiresAt *time.Time `json:"expires_at"` // nil: the server asks for no token, and no time is set
}
