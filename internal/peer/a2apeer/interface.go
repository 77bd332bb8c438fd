package a2apeer

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/agent-on-demand/aod/internal/peer"
)

// Version is a version of the protocol.
type Version string

// The versions that are spoken.
const (
	V10 Version = "1.0"
	V03 Version = "0.3"
)

// Binding is how the protocol goes over HTTP.
type Binding string

// The bindings that are spoken, the best first.
const (
	JSONRPC  Binding = "JSONRPC"
	HTTPJSON Binding = "HTTP+JSON"
)

// Interface is where an agent is asked, and how. It can be stored.
type Interface struct {
	URL     string  `json:"url"`
	Binding Binding `json:"binding"`
	Version Version `json:"version"`
	Tenant  string  `json:"tenant,omitempty"` // "": the agent has none
}

// known returns an interface of a card if its version and its binding are spoken here.
func (w interfaceWire) known() (i Interface, spoken bool) {
	i = Interface{URL: w.URL, Binding: Binding(cmp.Or(w.Binding, w.Transport, string(JSONRPC))), Tenant: w.Tenant}
	if i.Binding != JSONRPC && i.Binding != HTTPJSON || len(i.Tenant) > maxID ||
		strings.ContainsAny(i.Tenant, "/?#%\\") {
		return i, false
	}
	version := cmp.Or(w.Version, string(V10))
	switch {
	case version == "1" || strings.HasPrefix(version, "1."):
		i.Version = V10
	case version == string(V03) || strings.HasPrefix(version, string(V03)+"."):
		i.Version = V03
	default:
		return i, false
	}
	return i, true
}

// compareInterfaces puts the newer version and then JSON-RPC first.
func compareInterfaces(a, b Interface) int {
	return cmp.Or(strings.Compare(string(b.Version), string(a.Version)),
		-strings.Compare(string(a.Binding), string(b.Binding)))
}

// withOlder adds the older version behind each interface of the newer one.
func withOlder(list []Interface) []Interface {
	all := slices.Clone(list)
	for _, i := range list {
		i.Version, i.Tenant = V03, ""
		if !slices.Contains(all, i) {
			all = append(all, i)
		}
	}
	return all
}

// Agent is an agent at one of its interfaces. It is safe for concurrent use.
type Agent struct {
	wire   a2aclient.Transport
	params a2aclient.ServiceParams
	tenant string
}

// At returns the agent at an interface. The error is a *Violation for one at another origin than the agent's address.
func (c *Client) At(i Interface) (*Agent, error) {
	address, err := url.Parse(i.URL)
	if err != nil || !peer.SameOrigin(address, c.far.Base) {
		return nil, broken(RuleOrigin, "an interface has another origin than its address")
	}
	a := &Agent{params: a2aclient.ServiceParams{a2a.SvcParamVersion: {string(i.Version)}}, tenant: i.Tenant}
	switch {
	case i.Version == V10 && i.Binding == JSONRPC:
		a.wire = a2aclient.NewJSONRPCTransport(i.URL, c.far.HTTP)
	case i.Version == V10:
		a.wire = a2aclient.NewRESTTransport(address, c.far.HTTP)
	case i.Binding == JSONRPC:
		a.wire = a2av0.NewJSONRPCTransport(a2av0.JSONRPCTransportConfig{URL: i.URL, Client: c.far.HTTP})
	default:
		a.wire, err = a2av0.NewRESTTransport(a2av0.RESTTransportConfig{URL: i.URL, Client: c.far.HTTP})
	}
	if err != nil {
		return nil, broken(RuleInterfaces, "the address of an interface can't be used")
	}
	return a, nil
}
