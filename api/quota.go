package api

import (
	"encoding/json"
	"time"
)

// Quota is a bound of what a team or a token may have, and how much of it is taken (schemas/openapi.json, "Quota").
type Quota struct {
	Team  string `json:"team,omitempty"`  // whose it is
	Token string `json:"token,omitempty"` // likewise: one of them
	// Rule is the setting: teams.NAME.slots, queued, sessions, storage (bytes), model_tokens.day, model_cost.month, ...
	Rule  string      `json:"rule"`
	Limit json.Number `json:"limit"`
	Used  json.Number `json:"used"`               // with what is set aside
	Left  json.Number `json:"left"`               // at least 0
	Opens *time.Time  `json:"opens_at,omitempty"` // when all of it is left again; nil: when what is taken is given back
}
