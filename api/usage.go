package api

import "time"

// UsageSum is what was used: by ended runs and their calls of models, as far as they agree in what it is grouped by
// (schemas/openapi.json, "UsageSum"). Fields by which it isn't grouped are absent.
type UsageSum struct {
	Day      string  `json:"day,omitempty"` // 2026-02-21, in UTC: of the end of a run, or of a call of a model
	Team     string  `json:"team,omitempty"`
	Identity string  `json:"identity,omitempty"` // "token:NAME" or "user:SUBJECT"; absent of the server's own
	Unit     string  `json:"unit,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Model    string  `json:"model,omitempty"`
	Runs     int64   `json:"runs"`    // that ended; 0 where it is grouped by model
	WaitMS   int64   `json:"wait_ms"` // until their programs started
	RunMS    int64   `json:"run_ms"`  // from there to their ends
	CPUMS    int64   `json:"cpu_ms"`  // of processors that their programs took, as far as it is known
	Calls    int64   `json:"calls"`   // of models, that cost something; 0 where it is grouped by outcome
	Tokens   int64   `json:"tokens"`  // that were charged
	Cost     Cost    `json:"cost"`    // in the currency of the prices
}

// UsageFilter chooses what was used.
type UsageFilter struct {
	By           []string  // team, identity, unit, outcome, model, day; none: all in one
	Since, Until time.Time // days in UTC, the first inclusive, the last exclusive; zero: open
}

// UsageDay is the form of UsageSum.Day.
const UsageDay = time.DateOnly
