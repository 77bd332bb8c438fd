package api

// Facet is how many runs of a list have which value, such as which outcome.
type Facet struct {
	By     string       `json:"by"` // state, outcome, error_kind, unit or kind
	Counts []FacetCount `json:"counts"`
	Runs   int64        `json:"runs"` // that were counted: the newest 10,000 at most
	More   bool         `json:"more"` // there are older ones, which weren't
}

// FacetCount is how many runs have a value.
type FacetCount struct {
	Value string `json:"value"` // "": they have none
	Runs  int64  `json:"runs"`
}
