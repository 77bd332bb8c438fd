package api

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Unit is what a Service tells of a unit.
type Unit struct {
	Name         string          `json:"name"`
	Kind         string          `json:"kind"`
	Version      string          `json:"version"` // digest of its content
	Description  string          `json:"description"`
	Source       string          `json:"source"`           // "directory" or "upload"
	Origin       string          `json:"origin,omitempty"` // the directory
	By           string          `json:"by,omitempty"`     // the name of the token that uploaded this version
	Owner        *Owner          `json:"owner,omitempty"`  // of an upload; nil: of DefaultTeam
	Image        string          `json:"image,omitempty"`
	Concurrency  int             `json:"concurrency"`        // runs at once; 0: as many as the server allows
	Access       string          `json:"access"`             // "read-only" or "read-write"
	Disabled     bool            `json:"disabled,omitempty"` // it was switched off: its runs are refused
	Since        *time.Time      `json:"since"`
	Problem      *UnitProblem    `json:"problem"`
	Policy       *UnitPolicy     `json:"policy,omitempty"` // nil where there is no version that could be run
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// the units that may call it, as of some seconds ago at most; nil in lists
	CalledBy []string    `json:"called_by,omitempty"`
	Agent    *UnitAgent  `json:"agent,omitempty"`  // nil in lists, and of other units than wrapped agents
	Status   *UnitStatus `json:"status,omitempty"` // nil in lists
}

// UnitAgent is how a wrapped agent is called.
type UnitAgent struct {
	Type       string         `json:"type"`    // "json-rpc", or its patterns as "stdin-stdout"
	Enabled    bool           `json:"enabled"` // else its runs are refused
	Command    []string       `json:"command"`
	Program    *AgentProgram  `json:"program,omitempty"` // nil: nobody has looked yet, see there
	Flags      map[string]any `json:"flags,omitempty"`
	Dir        string         `json:"dir"` // where it starts
	Mode       string         `json:"mode"`
	Input      string         `json:"input"`
	Output     string         `json:"output"`
	InputFile  string         `json:"input_file,omitempty"`
	OutputFile string         `json:"output_file,omitempty"`
	Protocol   string         `json:"protocol,omitempty"`
	Env        []string       `json:"env,omitempty"`        // names
	CallerEnv  []string       `json:"caller_env,omitempty"` // names that a caller may set
	Approval   string         `json:"approval"`
	Approvers  []string       `json:"approvers,omitempty"` // who alone may answer what it asks to be permitted
	Session    *AgentSession  `json:"session,omitempty"`   // nil of one that has none
}

// AgentProgram says whether the first element of an agent's command is in its image. That is known
// when the image was built for an upload, or the agent had a run.
type AgentProgram struct {
	Found   bool   `json:"found"`
	Problem string `json:"problem,omitempty"` // which program, in which image, and where it was searched
	Hint    string `json:"hint,omitempty"`    // what to do about that
}

// AgentSession is how long the sessions of a wrapped agent live.
type AgentSession struct {
	Idle      string `json:"idle"`       // after which its container ends
	KeepAlive bool   `json:"keep_alive"` // one process for all turns
}

// UnitStatus is what goes on with a unit.
type UnitStatus struct {
	Running  int       `json:"running"`  // runs that have begun and aren't cleaned up; up to 1000 with those that wait
	Waiting  int       `json:"waiting"`  // runs that wait for their turn
	Sessions int       `json:"sessions"` // that are open
	LastRun  *LastRun  `json:"last_run"` // the newest; nil: there was none
	Next     *NextTime `json:"next"`     // that a schedule has for it; nil: none has any
	// the names of the schedules that run it, those that are paused too; the first 100
	Schedules []string `json:"schedules,omitempty"`
	// nil: no run of it has ended
	Lately *Lately `json:"lately,omitempty"`
}

// Lately is how the last runs of a unit ended.
type Lately struct {
	Runs      int     `json:"runs"`      // that were looked at: the newest 100 that have ended
	Succeeded int     `json:"succeeded"` // of these
	P50       float64 `json:"p50_ms"`    // from the start of the program to the end, of those that came to a start
	P95       float64 `json:"p95_ms"`
	// what they asked models for themselves, all together; nil: nothing that was charged
	Models *ModelTotal `json:"models,omitempty"`
}

// NextTime is when a schedule starts a run.
type NextTime struct {
	Schedule string    `json:"schedule"` // its name
	At       time.Time `json:"at"`
}

// LastRun is the newest run of a unit.
type LastRun struct {
	ID        string    `json:"id"`
	State     State     `json:"state"`
	Outcome   Outcome   `json:"outcome"`
	CreatedAt time.Time `json:"created_at"`
}

// UnitProblem says what is wrong with a unit's newest state, which isn't served.
type UnitProblem struct {
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// UnitVersion is a version of a unit that a server keeps.
type UnitVersion struct {
	Version string    `json:"version"`          // digest of its content, shortened
	Source  string    `json:"source"`           // "directory" or "upload"
	Origin  string    `json:"origin,omitempty"` // the directory
	By      string    `json:"by,omitempty"`     // the name of the token that uploaded it
	Since   time.Time `json:"since"`            // when the server first had it
	Current bool      `json:"current"`          // new runs get it
}

// UnitPolicy is what holds for the runs of a unit: what it asks for, or what the operator
// gives it, within the operator's bounds. What is about a sandbox is zero where there is none.
type UnitPolicy struct {
	// a duration such as "1m"; a request may ask for less or more, up to max_timeout
	Timeout      string   `json:"timeout"`
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
	Models       []string `json:"models,omitempty"`        // that it may ask

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

// maxName is the longest name: it must fit where a host name or a label does.
const maxName = 63

var (
	nameRule    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`) })
	notNameRune = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9._-]+`) })
	manySeps    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[._-]{2,}`) })
)

// CheckUnitName returns nil for a string that can be a unit's name, and so a part of an
// image tag: lower-case letters and digits, joined by single '.', '_' or '-', at most
// 63 bytes. Otherwise it returns an Input fault whose hint suggests a name near it.
func CheckUnitName(name string) error {
	if problem := nameProblem(name); problem != "" {
		return fault.New(fault.Input, "%s", problem).WithHint("%s", nameHint(name))
	}
	return nil
}

// Reserved begins the names of the units that come with AOD. No other unit has such a name, and no team the one before
// the dot.
const Reserved = "aod."

// CheckNotReserved returns an Input fault for a name that only a unit that comes with AOD may have.
func CheckNotReserved(name string) error {
	if !strings.HasPrefix(name, Reserved) {
		return nil
	}
	return fault.New(fault.Input, "the name %s begins with %s, as only those of units that come with AOD do",
		fault.Quote(name), Reserved).
		WithHint("give it another name in its agent.yaml")
}

// nameProblem says what is wrong with a name, "" if nothing is.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > maxName:
		return "the name " + fault.Quote(name) + " is longer than 63 characters"
	case !nameRule().MatchString(name):
		return "the name " + fault.Quote(name) + " can't be an image tag"
	}
	return ""
}

func nameHint(name string) string {
	const rule = "lower-case letters and digits, joined by single '.', '_' or '-'"
	if s := SuggestUnitName(name); s != "" {
		return "use " + rule + ", for example " + s
	}
	return "use " + rule
}

// SuggestUnitName makes a valid name out of one that isn't, or "" when nothing is left.
func SuggestUnitName(name string) string {
	if len(name) > 4*maxName {
		name = name[:4*maxName]
	}
	s := notNameRune().ReplaceAllString(strings.ToLower(name), "-")
	s = manySeps().ReplaceAllString(s, "-")
	if s = strings.Trim(s, "._-"); len(s) > maxName {
		s = strings.Trim(s[:maxName], "._-")
	}
	return s
}

// CheckScheduleName returns nil for a string that can be a schedule's name: one that could be a
// unit's, see CheckUnitName. Otherwise it returns an Input fault.
func CheckScheduleName(name string) error {
	if len(name) <= maxName && nameRule().MatchString(name) {
		return nil
	}
	return fault.New(fault.Input, "%s is not a valid schedule name", fault.Quote(name)).
		WithHint("use lower-case letters and digits, joined by single '.', '_' or '-', at most %d", maxName)
}
