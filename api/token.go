package api

import "time"

// TokenGrant is what a token allows.
type TokenGrant struct {
	Name      string     `json:"name,omitempty"`  // "": the server's own, or none where none is needed
	Scopes    []string   `json:"scopes"`          // "read", "run", "upload", "approve", "admin", "metrics"
	Teams     []string   `json:"teams,omitempty"` // the first owns what is made; none: DefaultTeam, with "admin" all
	Units     []string   `json:"units,omitempty"` // that it may use; none: all of its teams
	Rate      int        `json:"rate,omitempty"`  // requests in a minute; 0: no bound
	Runs      int        `json:"runs,omitempty"`  // runs at once; 0: no bound
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Token is what is told of a token with a name.
type Token struct {
	TokenGrant
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"` // to the minute; nil: never
	GraceUntil *time.Time `json:"grace_until,omitempty"`  // when the last one is over that a rotation has replaced
}

// TokenRequest asks for a new token.
type TokenRequest struct {
	Name    string   `json:"name"`
	Scopes  []string `json:"scopes"`
	Teams   []string `json:"teams,omitempty"`
	Units   []string `json:"units,omitempty"`
	Rate    int      `json:"rate,omitempty"`
	Runs    int      `json:"runs,omitempty"`
	Expires string   `json:"expires,omitempty"` // "90d", "12h", a date or a time of RFC 3339; "": never
}

// RemovedToken says what was done when a token was revoked.
type RemovedToken struct {
	Name  string `json:"name"`
	Given int    `json:"given"` // schedules that belong to another token now
}

// Whoami is what a server knows of who asks.
type Whoami struct {
	TokenGrant
	// Identity is "token:NAME" or "user:SUBJECT"; "": the server's own token, or none.
	Identity string   `json:"identity,omitempty"`
	Groups   []string `json:"groups,omitempty"` // of a person, as questions name their approvers
	Version  string   `json:"version"`          // of the server
}
