package capsule

import (
	"cmp"
	"net/textproto"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// The protocols of agents elsewhere.
const (
	ProtocolAgentHTTP = "agent-http" // the agent HTTP contract
	ProtocolA2A       = "a2a"        // the A2A protocol
)

// Remote is where the agent is that does the work of a unit of KindRemote, and what it is
// asked for.
type Remote struct {
	Protocol  string `json:"protocol"`   // that it speaks; "" is ProtocolAgentHTTP
	URL       string `json:"url"`        // what the endpoints, or the card, lie below
	PlainHTTP bool   `json:"plain_http"` // http:// also to another machine
	Stream    bool   `json:"stream"`     // ask for events, not for one answer
	CAFile    string `json:"ca_file"`    // of the directory; "" is none
	CA        []byte `json:"-"`          // its certificates, in PEM, which are trusted beside the system's
	Auth      *Auth  `json:"-"`          // nil: nobody is told who asks

	// Of the agent HTTP contract alone.
	TaskType string `json:"task_type"`
	Mode     string `json:"mode"`      // "" is not said
	RiskTier string `json:"risk_tier"` // "" is not said
	DomainID string `json:"domain_id"` // "" is not said
}

// IsA2A reports whether the agent speaks the A2A protocol.
func (r *Remote) IsA2A() bool { return r != nil && r.Protocol == ProtocolA2A }

// Auth is how the agent learns who asks: the header has the secret's value, after the scheme
// and a space where there is a scheme.
type Auth struct {
	Header, Scheme string
	Secret         string // its name
}

// remoteYAML is `remote` of agent.yaml as it stands there.
type remoteYAML struct {
	Remote
	Auth *authYAML `json:"auth"`
}

type authYAML struct {
	Header string  `json:"header"`
	Scheme *string `json:"scheme"`
	Secret string  `json:"secret"`
}

const (
	authorization = "Authorization"
	plainScheme   = "http://"
)

// remote takes over what has the right form; name is the unit's.
func (f *remoteYAML) remote(name string) *Remote {
	if f == nil {
		return nil
	}
	r := f.Remote
	r.Auth = f.Auth.auth()
	if r.IsA2A() {
		return &r
	}
	r.TaskType = cmp.Or(r.TaskType, strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	return &r
}

func (f *authYAML) auth() *Auth {
	if f == nil {
		return nil
	}
	a := &Auth{Header: textproto.CanonicalMIMEHeaderKey(f.Header), Secret: f.Secret}
	if a.Header == "" {
		a.Header = authorization
	}
	switch {
	case f.Scheme != nil:
		a.Scheme = *f.Scheme
	case a.Header == authorization:
		a.Scheme = "Bearer"
	}
	return a
}

// readRemote reads what belongs to a unit of KindRemote beside its agent.yaml.
func readRemote(d *Directory, c *Capsule) {
	d.Refuse("an agent elsewhere has none", "remove it: nothing is built here, and nothing is called from here",
		"Dockerfile", "Dockerfile.dockerignore", ".dockerignore", toolsFile, mcpFile, "run.py")
	if c.Contract = d.Contract(); c.Contract != nil && !c.Remote.IsA2A() {
		for _, place := range append(c.Contract.Input.FilePlaces(), c.Contract.Output.FilePlaces()...) {
			d.findings = append(d.findings, fault.Finding{
				File: contract.FileName, Pointer: place,
				Message: "it is a file, and the agent HTTP contract carries none",
				Hint: "give the content itself, or an address where the agent can get it; agents of the A2A " +
					"protocol take files",
			})
		}
	}
	if c.Remote != nil && c.Remote.CAFile != "" {
		c.Remote.CA = d.readCertificates(c.Remote.CAFile)
	}
}

// notElsewhere are the keys of agent.yaml that have no meaning for an agent elsewhere, with
// what to do instead.
var notElsewhere = map[string]string{
	"/model": "", "/models": "", "/temperature": "", "/max_tokens": "", "/loop": "", "/network": "", "/read_only": "",
	"/runtime": "", "/egress": "", "/upstreams": "", "/warm": "", "/reuse": "", "/needs": "",
	"/limits/memory": "", "/limits/cpus": "", "/limits/pids": "", "/limits/output": "", "/limits/log": "",
	"/budgets": "leave it out: such a unit calls nobody", "/recursion": "leave it out: such a unit calls nobody",
	"/secrets": "name the secret that the agent wants in remote.auth.secret",
}

// ofTheContract are the keys of `remote` that the agent HTTP contract alone has.
var ofTheContract = []string{"/remote/domain_id", "/remote/mode", "/remote/risk_tier", "/remote/task_type"}

// isSet reports whether anything stands at a pointer of names only.
func isSet(object map[string]any, pointer string) bool {
	value := any(object)
	for _, token := range strictjson.Path(pointer) {
		inner, _ := value.(map[string]any)
		var set bool
		if value, set = inner[token]; !set {
			return false
		}
	}
	return true
}

func (f *remoteYAML) isA2A() bool { return f != nil && f.IsA2A() }

// ownHeaders are those that a request of ours has anyway, or that say how it travels.
var ownHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "User-Agent",
}
