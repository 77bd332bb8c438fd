package catalog

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

const (
	maxText        = 2048
	maxList        = 10_000 // more than a file can hold
	maxConcurrency = 10_000
)

var providerName = lazyregexp.New(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)

// spoken are the dialects of each kind that says none.
var spoken = map[Kind][]Dialect{
	OpenAI:     {Chat, Responses, Embeddings},
	Anthropic:  {Messages},
	Compatible: {Chat, Embeddings},
	Script:     {Chat, Responses, Messages, Embeddings},
}

func (r *reader) providers(at string, v any) map[string]Provider {
	all := map[string]Provider{}
	for name, value := range r.Each(at, v) {
		if !providerName().MatchString(name) {
			r.Report(strictyaml.Under(at, name), "a provider can't have this name",
				"use up to 64 of a-z, 0-9, dot, dash and underscore")
			continue
		}
		all[name] = r.provider(strictyaml.Under(at, name), value)
	}
	return all
}

func (r *reader) provider(at string, v any) Provider {
	var p Provider
	var kind, anyField string
	var concurrency int64
	usage := true
	r.Object(at, v, strictyaml.Fields{
		"kind": r.text(&kind), "key": r.key(&p.Key), "base_url": r.text(&p.BaseURL),
		"plain_http": r.Boolean(&p.PlainHTTP),
		"dialects":   r.dialects(&p.Dialects), "concurrency": r.integer(&concurrency, maxConcurrency),
		"fields": r.text(&anyField), "stream_usage": r.Boolean(&usage), "answers": r.text(&p.Answers),
		"timeouts": r.timeouts(&p.Timeouts),
	})
	p.Kind, p.Concurrency, p.NoUsage = Kind(kind), int(concurrency), !usage
	p.BaseURL = strings.TrimSuffix(p.BaseURL, "/")
	p.AnyField = anyField == "any" || anyField == "" && p.Kind == Script
	if anyField != "" && anyField != "any" && anyField != "known" {
		r.Report(at+"/fields", "it is neither any nor known",
			"write any to pass on fields that are not known, known to refuse them")
	}
	if len(p.Dialects) == 0 {
		p.Dialects = spoken[p.Kind]
	}
	r.checkProvider(at, p)
	return p
}

func (r *reader) dialects(into *[]Dialect) func(string, any) {
	return func(at string, v any) {
		r.Texts(at, v, maxList, "write a list of chat, responses, messages and embeddings", func(s string) bool {
			*into = append(*into, Dialect(s))
			return slices.Contains(Dialects(), Dialect(s))
		})
	}
}

// checkProvider finds what a provider of its kind lacks, or can't have.
func (r *reader) checkProvider(at string, p Provider) {
	switch {
	case spoken[p.Kind] == nil:
		r.Report(at, "it has no kind that there is", "write kind: openai, anthropic, compatible or script")
	case p.Kind == Compatible && p.BaseURL == "":
		r.Report(at, "it has no base_url",
			"write the address that its dialects lie below, such as http://127.0.0.1:8000/v1")
	case p.Kind == Script && p.Answers == "":
		r.Report(at, "it has no answers", "name the file with the answers of the script")
	case p.Kind == Script && (p.Key != "" || p.BaseURL != ""):
		r.Report(at, "a script has no key and no address", "leave key and base_url out")
	case p.Kind != Script && p.Answers != "":
		r.Report(at, "only a script has answers", "leave answers out, or write kind: script")
	}
	if p.BaseURL != "" {
		r.checkAddress(at+"/base_url", p)
	}
}

func (r *reader) checkAddress(at string, p Provider) {
	if problem, hint := addressProblem(p.BaseURL, p.PlainHTTP); problem != "" {
		r.Report(at, problem, hint)
	}
}

// CheckAddress returns what is wrong with the address of a provider, "" for nothing. Of the address it says
// the host at most.
func CheckAddress(address string) string {
	problem, _ := addressProblem(address, false)
	return problem
}

func addressProblem(address string, plainHTTP bool) (problem, hint string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "it isn't an address", "write https:// and a host, then the path that the dialects lie below"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "it holds more than a host and a path", "a key belongs into a file: see key"
	case u.Scheme == "http" && !plainHTTP && !httpwire.IsLoopback(u.Hostname()):
		return "prompts and the key would go unencrypted to " + fault.Quote(u.Host),
			"write https://, or plain_http: true where the way there is safe"
	}
	return "", ""
}

// keyName is what the file of a secret can be called. looksLikeKey is a key itself, as vendors make them.
var (
	keyName      = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	looksLikeKey = lazyregexp.New(`^(?:(?:sk|pk|gsk|xai|hf|nvapi)[-_]|AIza|Bearer ).{12}|` +
		`^[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]{31,}$`)
)

// key reads the name of a secret. A key in its place is never shown.
func (r *reader) key(into *string) func(string, any) {
	return func(at string, v any) {
		s, _ := v.(string)
		if looksLikeKey().MatchString(s) {
			r.Report(at, "it looks like a key itself, which belongs into no file of models",
				"revoke it if others have seen it, keep a new one with `aod secret set NAME`, and write key: NAME")
			return
		}
		if !keyName().MatchString(s) {
			r.Report(at, "it isn't the name of a secret",
				"keep the key with `aod secret set NAME`, and write key: NAME")
			return
		}
		*into = s
	}
}

// Dialects are those that providers of a kind speak, unless they say something else.
func (k Kind) Dialects() []Dialect { return spoken[k] }
