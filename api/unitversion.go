package api

import "time"

// UnitVersion is a version of a unit that a server keeps.
type UnitVersion struct {
	Version string    `json:"version"`          // digest of its content, shortened
	Source  string    `json:"source"`           // "directory" or "upload"
	Origin  string    `json:"origin,omitempty"` // the directory
	Since   time.Time `json:"since"`            // when the server first had it
	Current bool      `json:"current"`          // new runs get it
}
