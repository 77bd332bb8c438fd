package capsule

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/textproto"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// parseDuration reads "30s", "5m" or "1h30m", from least to most.
func parseDuration(v any, least, most time.Duration) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%s has no unit", fault.Quote(fmt.Sprint(v)))
	}
	d, err := quantity.ParseDuration(s, least, most)
	if errors.Is(err, quantity.ErrRange) {
		err = fmt.Errorf("%w: from %s to %s", err, quantity.DurationText(least), quantity.DurationText(most))
	}
	return d, err
}

// parseSize reads "512MiB", "512m", "1.5g", or a number of bytes, from least to most.
func parseSize(v any, least, most int64) (int64, error) {
	s := fmt.Sprint(v)
	if n, ok := v.(float64); ok {
		s = strconv.FormatFloat(n, 'f', -1, 64)
	}
	n, err := quantity.ParseSize(s, least, most)
	if errors.Is(err, quantity.ErrRange) {
		err = fmt.Errorf("%w: from %s to %s", err, quantity.SizeText(least), quantity.SizeText(most))
	}
	return n, err
}

// isUnitValue reports whether a JSON value may hold a size or a duration at all; what
// may not is the schema's to report.
func isUnitValue(v any) bool {
	switch v.(type) {
	case string, json.Number, float64, int, int64:
		return true
	}
	return false
}

// units reads the values of agent.yaml that a schema can't check, and gathers what is
// wrong with them.
type units struct{ findings []fault.Finding }

func (u *units) report(pointer, message, hint string) {
	u.findings = append(u.findings, fault.Finding{Pointer: pointer, Message: message, Hint: hint})
}

func (u *units) duration(pointer string, v any, least, most time.Duration) time.Duration {
	if !isUnitValue(v) {
		return 0
	}
	d, err := parseDuration(v, least, most)
	if err != nil {
		u.report(pointer, named(pointer, err.Error()), durationHint)
	}
	return d
}

func (u *units) size(pointer string, v any, least, most int64) int64 {
	if !isUnitValue(v) {
		return 0
	}
	n, err := parseSize(v, least, most)
	if err != nil {
		u.report(pointer, named(pointer, err.Error()), sizeHint)
	}
	return n
}

// hosts reads a list of hosts. The schema reports one that is too long.
func (u *units) hosts(pointer string, entries []string) outside.List {
	if len(entries) > outside.MaxRules {
		return nil
	}
	list, findings := outside.ParseList(entries)
	for _, f := range findings {
		u.report(pointer+f.Pointer, f.Message, f.Hint)
	}
	return list
}

// name takes the name that agent.yaml gives, else the directory's, and checks it.
func (u *units) name(given *string, object map[string]any, dir string) string {
	value, isGiven := object["name"]
	if _, isText := value.(string); isGiven && !isText {
		u.report("/name", "name: expected a string", fmt.Sprintf("put it in quotes, such as name: %q",
			cmp.Or(api.SuggestUnitName(scalarText(value)), nameOr(dir))))
		return dir
	}
	if given != nil {
		if err := api.CheckUnitName(*given); err != nil {
			public := fault.Public(err)
			u.report("/name", public.Msg, public.Hint)
		}
		return *given
	}
	if api.CheckUnitName(dir) != nil {
		u.report("", "it gives no name, and that of the directory, "+fault.Quote(dir)+", can't be an image tag",
			"add name: "+nameOr(dir))
	}
	return dir
}

// scalarText is how a value was written that isn't text, or "" for a list, an object and none.
func scalarText(value any) string {
	switch value.(type) {
	case nil, []any, map[string]any:
		return ""
	}
	return fmt.Sprint(value)
}

// refuseWrapped finds what only wrapped agents have.
func (u *units) refuseWrapped(object map[string]any) {
	for _, key := range forWrapped {
		if _, given := object[key]; given {
			u.report("/"+key, key+" is for units of the kind agent", "add kind: agent, or leave it out")
		}
	}
}

// checkWrapped finds what the schema can't say about a wrapped agent, and settings without a
// meaning.
func (u *units) checkWrapped(file agentYAML, object map[string]any) {
	u.refuseRemote(file, object)
	u.refuseMCP(object)
	for _, pointer := range []string{"/temperature", "/max_tokens", "/loop"} {
		if isSet(object, pointer) {
			u.report(pointer, named(pointer, "it has no meaning for a wrapped agent, which asks models itself"),
				"leave it out, or tell the agent in agent.command")
		}
	}
	if file.Access == "read-write" && file.Concurrency > 1 {
		u.report("/concurrency", "concurrency: an agent with access: read-write has one run at a time",
			"leave it out, or write access: read-only")
	}
	if file.Command == nil {
		if _, given := object["agent"]; !given {
			u.report("", "a unit of the kind agent has to say how its program is called",
				`add agent: {command: [PROGRAM, "{message}"], input: args}`)
		}
		return
	}
	for i, name := range file.Command.CallerEnv {
		if secretName().MatchString(name) {
			u.report("/agent/caller_env/"+strconv.Itoa(i),
				"agent.caller_env: "+fault.Quote(name)+
					" looks like a secret, and everybody who may look at the engine could read it", "leave it out")
		}
	}
	env := file.Command.Env
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if env[name] != "{placeholder}" && looksSecret(name, env[name]) {
			u.report("/agent/env/"+strictjson.Escape(name),
				"agent.env: "+fault.Quote(name)+" looks like a secret, and everybody who has the directory can read it",
				"write {placeholder} if the program only wants to see something there")
		}
	}
}

// checkFlow finds settings without a meaning.
func (u *units) checkFlow(file agentYAML, object map[string]any) {
	u.refuseOthers(file, object)
	for _, pointer := range slices.Sorted(maps.Keys(notInFlow)) {
		if isSet(object, pointer) {
			u.report(pointer, named(pointer, "it has no meaning for a flow, which has no container"),
				cmp.Or(notInFlow[pointer], "leave it out: that is the business of the units that the flow runs"))
		}
	}
	if file.Recursion > 0 && file.Concurrency > 0 {
		u.report("/concurrency", "concurrency: with recursion, a run of the flow could wait for its own caller to end",
			"leave one of the two out")
	}
}

// checkTexts looks for what other clients would fill in, and for programs that aren't there.
func (u *units) checkTexts(at string, s mcpServer, has func(string) bool) {
	texts := map[string]string{at + "/command": s.Command}
	for i, arg := range s.Args {
		texts[at+"/args/"+strconv.Itoa(i)] = arg
	}
	for name, text := range s.Env {
		texts[at+"/env/"+strictjson.Escape(name)] = text
	}
	for _, pointer := range slices.Sorted(maps.Keys(texts)) {
		name := path.Clean(texts[pointer])
		if strings.HasPrefix(name, "src/") && !strings.HasPrefix(pointer, at+"/env/") && !has(name) {
			u.report(pointer, "there is no file "+fault.Quote(name),
				"add it, or fix the path: a server starts in the capsule's directory")
		}
		if strings.Contains(texts[pointer], "${") {
			u.report(pointer, "${…} stands for nothing here",
				"write the value itself; a server has the capsule's environment anyway")
		}
	}
}

// checkEnv looks for names that no variable has, and for secrets: what is in the directory is
// in the image.
func (u *units) checkEnv(at string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pointer := at + "/" + strictjson.Escape(name)
		switch value := env[name]; {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00"):
			u.report(pointer, fault.Quote(name)+" isn't a variable", "use a name without =, and texts without NUL")
		case looksSecret(name, value):
			u.report(pointer, "it looks like a secret, and whoever has the image can read it",
				"take it out: servers in a capsule have no network to use it in")
		}
	}
}

// checkToolNames finds tools that a model couldn't tell from one another.
func (u *units) checkToolNames(at, server string, listed []string, tools []Tool) {
	seen := map[string]int{}
	for i, tool := range listed {
		pointer, name := fmt.Sprintf("%s/tools/%d", at, i), server+"__"+notInNames().ReplaceAllString(tool, "_")
		first, twice := seen[name]
		switch {
		case twice:
			u.report(pointer,
				fmt.Sprintf("a model would have the tools %s and %s under one name", fault.Quote(listed[first]),
					fault.Quote(tool)), "list one of them")
		case len(name) > maxToolName:
			u.report(pointer, fmt.Sprintf("a model would have it as %s, which is longer than %d", fault.Quote(name),
				maxToolName), "give the server a shorter name")
		default:
			seen[name] = i
		}
	}
	for _, tool := range tools {
		_, taken := seen[tool.Name]
		if taken || listed == nil && strings.HasPrefix(tool.Name, server+"__") {
			u.report(at, "the tool "+fault.Quote(tool.Name)+" of "+toolsFile+
				" has, or may have, the name of one of this server", "give one of the two another name")
		}
	}
}

// refuseMCP finds an `mcp` where no server is.
func (u *units) refuseMCP(object map[string]any) {
	if _, given := object["mcp"]; given {
		u.report("/mcp", "mcp is for units of the kind mcp",
			"add kind: mcp, or leave it out; servers of a capsule's own stand in mcp.json")
	}
}

// checkMCP finds what the schema can't say about `mcp`, and settings without a meaning.
func (u *units) checkMCP(file agentYAML, object map[string]any) {
	u.refuseRemote(file, object)
	u.refuseWrapped(object)
	for _, pointer := range []string{
		"/model", "/models", "/temperature", "/max_tokens", "/loop", "/warm", "/reuse",
		"/retries", "/budgets", "/recursion",
	} {
		if isSet(object, pointer) {
			u.report(pointer, named(pointer, "it has no meaning for an MCP server"), "leave it out")
		}
	}
	if file.MCP == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(file.MCP.Env)) {
		if looksSecret(name, file.MCP.Env[name]) {
			u.report("/mcp/env",
				"mcp.env: "+fault.Quote(name)+" looks like a secret, and everybody who has the directory can read it",
				"leave it out: a sealed server reaches nobody who would want a secret")
		}
	}
}

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
		u.report("/remote/ca_file", "remote.ca_file: "+fault.Quote(r.CAFile)+" is not a file of the directory",
			"name a file in it, without ./ and ..")
	}
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
