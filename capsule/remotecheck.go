package capsule

import (
	"io/fs"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// notElsewhere are the keys of agent.yaml that have no meaning for an agent elsewhere, with
// what to do instead.
var notElsewhere = map[string]string{
	"/model": "", "/models": "", "/temperature": "", "/max_tokens": "", "/loop": "", "/network": "", "/read_only": "",
	"/runtime": "", "/egress": "", "/upstreams": "", "/warm": "", "/reuse": "",
	"/limits/memory": "", "/limits/cpus": "", "/limits/pids": "", "/limits/output": "", "/limits/log": "",
	"/budgets": "leave it out: such a unit calls nobody", "/recursion": "leave it out: such a unit calls nobody",
	"/secrets": "name the secret that the agent wants in remote.auth.secret",
}

// ofTheContract are the keys of `remote` that the agent HTTP contract alone has.
var ofTheContract = []string{"/remote/domain_id", "/remote/mode", "/remote/risk_tier", "/remote/task_type"}

// refuseOthers finds what other kinds have.
func (u *units) refuseOthers(file agentYAML, object map[string]any) {
	u.refuseRemote(file, object)
	u.refuseMCP(object)
	u.refuseWrapped(object)
}

// refuseRemote finds a `remote` where the agent is here.
func (u *units) refuseRemote(_ agentYAML, object map[string]any) {
	if _, given := object["remote"]; given {
		u.report("/remote", "remote is for units of the kind remote", "add kind: remote, or leave it out")
	}
}

// checkRemote finds what the schema can't say about `remote`.
func (u *units) checkRemote(file agentYAML, object map[string]any) {
	if _, given := object["remote"]; !given {
		u.report("", "a unit of the kind remote has to say where its agent is", "add remote: {url: https://HOST}")
	}
	for _, pointer := range slices.Sorted(maps.Keys(notElsewhere)) {
		if !isSet(object, pointer) || pointer == "/limits/output" && file.Remote.isA2A() {
			continue
		}
		hint := notElsewhere[pointer]
		if hint == "" {
			hint = "leave it out: that is the business of the agent itself"
		}
		u.report(pointer, named(pointer, "it has no meaning for an agent elsewhere"), hint)
	}
	u.refuseMCP(object)
	u.refuseWrapped(object)
	for _, pointer := range ofTheContract {
		if file.Remote.isA2A() && isSet(object, pointer) {
			u.report(pointer, named(pointer, "the A2A protocol has no such thing"),
				"leave it out: it belongs to protocol: agent-http")
		}
	}
	u.checkAddress(file.Remote)
	u.checkAuth(file.Remote)
}

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

func (u *units) checkAddress(r *remoteYAML) {
	if r == nil || r.URL == "" {
		return // the schema says it
	}
	plain := strings.HasPrefix(r.URL, plainScheme)
	if err := httpwire.CheckAgentAddress(r.URL, r.PlainHTTP); err != nil {
		public := fault.Public(err)
		hint := public.Hint
		if plain && httpwire.CheckAgentAddress(r.URL, true) == nil {
			hint = "use https, or allow it with remote.plain_http: true"
		}
		u.report("/remote/url", named("/remote/url", public.Msg), hint)
	}
	if r.PlainHTTP && !plain {
		u.report("/remote/plain_http", "remote.plain_http: it has no meaning with https",
			"leave it out, or write the url with http://")
	}
	if r.CAFile != "" && plain {
		u.report("/remote/ca_file", "remote.ca_file: it has no meaning with http",
			"leave it out, or write the url with https://")
	}
	if r.CAFile != "" && !fs.ValidPath(r.CAFile) {
		u.report("/remote/ca_file", "remote.ca_file: "+fault.Quote(r.CAFile)+" is no file of the directory",
			"name a file in it, without ./ and ..")
	}
}

// ownHeaders are those that a request of ours has anyway, or that say how it travels.
var ownHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "User-Agent",
}

func (u *units) checkAuth(r *remoteYAML) {
	if r == nil || r.Auth == nil {
		return
	}
	if name := textproto.CanonicalMIMEHeaderKey(r.Auth.Header); slices.Contains(ownHeaders, name) {
		u.report("/remote/auth/header", "remote.auth.header: "+name+" is a header that each request has for itself",
			"write Authorization, or one such as X-API-Key")
	}
	if r.PlainHTTP && strings.HasPrefix(r.URL, plainScheme) {
		u.findings = append(u.findings, fault.Finding{
			Pointer: "/remote/auth", Warning: true,
			Message: "the secret goes over plain http, where everybody on the way can read it", Hint: "use https",
		})
	}
}
