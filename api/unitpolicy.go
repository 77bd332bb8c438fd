package api

// UnitPolicy is what holds for the runs of a unit: what it asks for, or what the operator
// gives it, within the operator's bounds. What is about a sandbox is zero where there is none.
type UnitPolicy struct {
	Timeout      string   `json:"timeout"` // a duration such as "1m"; a request may ask for less or more, up to max_timeout
	MaxTimeout   string   `json:"max_timeout"`
	Retries      int      `json:"retries"`
	MayCall      []string `json:"may_call"` // units
	Network      string   `json:"network,omitempty"`
	Egress       []string `json:"egress,omitempty"`    // hosts that it may reach by name
	ReadOnly     bool     `json:"read_only,omitempty"` // the root file system
	Runtime      string   `json:"runtime,omitempty"`   // of isolation; "": the engine's default
	MemoryBytes  int64    `json:"memory_bytes,omitempty"`
	CPUs         float64  `json:"cpus,omitempty"`
	PIDs         int64    `json:"pids,omitempty"`
	OutputBytes  int64    `json:"output_bytes,omitempty"`
	Reuse        int      `json:"reuse,omitempty"`         // runs that one container may serve
	Warm         int      `json:"warm,omitempty"`          // containers that wait, whether it is called or not
	BuildNetwork string   `json:"build_network,omitempty"` // of its image's build: "none" or "default"
	Env          []string `json:"env,omitempty"`           // names of variables that the operator gives it
	Upstreams    []string `json:"upstreams,omitempty"`     // that it may ask
	Secrets      []string `json:"secrets,omitempty"`       // names of the variables in which its program gets some

	Lowered []LoweredWish `json:"lowered,omitempty"`
	Refusal *UnitRefusal  `json:"refusal,omitempty"` // why it isn't run; nil: it is
}

// UnitRefusal says which rule of the operator's refuses a unit, and what would allow it.
type UnitRefusal struct {
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// LoweredWish is something that a unit would have more of if the operator let it.
type LoweredWish struct {
	Setting string `json:"setting"` // as in agent.yaml: "limits.memory"
	Asked   string `json:"asked"`
	Holds   string `json:"holds"`
	Rule    string `json:"rule"` // the setting of the server: "policy.uploads.memory"
}
