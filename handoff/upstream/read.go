package upstream

import (
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// Bounds of a table.
const (
	maxUpstreams = 100
	maxPaths     = 100
	maxText      = 2048 // bytes
)

var (
	// allMethods are those that can be passed on, and usual where a table says nothing.
	allMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	usual      = []string{"GET", "HEAD", "POST"}

	headerRule = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
	schemeRule = lazyregexp.New(`^[A-Za-z][A-Za-z0-9._-]{0,31}$`)
)

// Read reads a table of upstreams, which is all of the document. Files in it begin at a
// directory.
func Read(doc *strictyaml.Document, dir string) (Table, []fault.Finding) {
	r := &reader{strictyaml.Reader{Doc: doc}, dir}
	return r.table("", doc.Value), r.Findings
}

// ReadFile reads a file that holds a table under the key upstreams, and nothing else. Files in
// it begin at its directory.
func ReadFile(name string, raw []byte) (Table, []fault.Finding) {
	doc, findings := strictyaml.Parse(name, raw)
	if len(findings) > 0 {
		return nil, findings
	}
	var table Table
	r := &reader{strictyaml.Reader{Doc: doc}, filepath.Dir(name)}
	r.Object("", doc.Value, strictyaml.Fields{"upstreams": func(at string, v any) { table = r.table(at, v) }})
	return table, r.Findings
}

// reader reads a table.
type reader struct {
	strictyaml.Reader
	dir string
}

func (r *reader) table(at string, v any) Table {
	table := Table{}
	object, ok := v.(map[string]any)
	switch {
	case !ok && v != nil:
		r.Report(at, "it isn't a map", "write names with what each upstream is")
	case len(object) > maxUpstreams:
		r.Report(at, fmt.Sprintf("there are more than %d upstreams", maxUpstreams), "leave those out that nobody uses")
		return table
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		here := strictyaml.Under(at, name)
		if err := outside.CheckUpstream(name); err != nil {
			public := fault.Public(err)
			r.Report(here, public.Msg, public.Hint)
			continue
		}
		table[name] = r.upstream(here, object[name])
	}
	return table
}

func (r *reader) upstream(at string, v any) Upstream {
	var u Upstream
	r.Object(at, v, strictyaml.Fields{
		"url":        r.text(&u.URL, nil, "write https:// and a host, then the path that all lies below"),
		"plain_http": r.Boolean(&u.PlainHTTP),
		"secret": r.text(&u.Secret, secrets.NameRule(),
			"write the name of a secret: a file of this name, of mode 600, where secrets are kept"),
		"header": r.text(&u.Header, headerRule(), "write Authorization, or one such as X-API-Key"),
		"scheme": r.text(&u.Scheme, schemeRule(), "write a word such as Bearer or Token"),
		"methods": r.list(&u.Methods, "write a list of "+strings.Join(allMethods, ", "),
			func(s string) bool { return slices.Contains(allMethods, s) }),
		"paths": r.list(&u.Paths, "write a list of plain paths that begin with a slash, such as [/v1/search]",
			isPlain),
		"ca_file": r.text(&u.CAFile, nil, "name a file with certificates in PEM"),
	})
	r.check(at, &u)
	return u
}

func isPlain(prefix string) bool {
	clean, ok := cleanPath(prefix)
	return ok && clean == prefix && prefix != ""
}

// check fills in what a table needn't say, and finds what contradicts itself.
func (r *reader) check(at string, u *Upstream) {
	u.URL = strings.TrimSuffix(u.URL, "/")
	if u.Methods == nil {
		u.Methods = usual
	}
	switch {
	case u.Secret == "" && (u.Header != "" || u.Scheme != ""):
		r.Report(at, "it has a header or a scheme for a key, and no secret", "name its secret, or leave them out")
	case u.Header == "" && u.Scheme == "":
		u.Header, u.Scheme = "Authorization", "Bearer"
	case u.Header == "":
		u.Header = "Authorization"
	}
	u.Header = textproto.CanonicalMIMEHeaderKey(u.Header)
	if slices.Contains(staysBehind, plain(u.Header)) || u.Header == "Cookie" {
		r.Report(at+"/header", u.Header+" is a header that each request has for itself",
			"write Authorization, or one such as X-API-Key")
	}
	if u.CAFile != "" && !filepath.IsAbs(u.CAFile) {
		u.CAFile = filepath.Join(r.dir, u.CAFile)
	}
	r.checkAddress(at+"/url", *u)
}

func (r *reader) checkAddress(at string, u Upstream) {
	address, err := url.Parse(u.URL)
	switch {
	case u.URL == "":
		r.Report(strings.TrimSuffix(at, "/url"), "it has no url",
			"write url: https:// and a host, then the path that all lies below")
		return
	case err != nil || address.Hostname() == "" || address.Scheme != "https" && address.Scheme != "http":
		r.Report(at, "it isn't an address", "write https:// and a host, then the path that all lies below")
		return
	}
	_, plain := cleanPath(address.EscapedPath())
	switch {
	case address.User != nil || address.RawQuery != "" || address.ForceQuery || strings.Contains(u.URL, "#"):
		r.Report(at, "it holds more than a host and a path", "a key belongs into a file: see secret")
	case !plain:
		r.Report(at, "its path isn't plain", "leave out . and .., empty segments, backslashes and encoded slashes")
	case address.Scheme == "http" && !u.PlainHTTP && !httpwire.IsLoopback(address.Hostname()):
		r.Report(at, "the key would go unencrypted to "+fault.Quote(address.Host),
			"write https://, or plain_http: true where the way there is safe")
	case address.Scheme == "http" && u.CAFile != "":
		r.Report(at, "with http there is no certificate for ca_file", "leave ca_file out, or write https://")
	}
}

// text reads a text of a form; nil is any.
func (r *reader) text(into *string, form *regexp.Regexp, hint string) func(string, any) {
	return func(at string, v any) {
		s, ok := v.(string)
		if !ok || s == "" || len(s) > maxText || form != nil && !form.MatchString(s) {
			r.Report(at, "it isn't what can stand here", hint)
			return
		}
		*into = s
	}
}

// list reads a list of texts, each with its own check.
func (r *reader) list(into *[]string, hint string, good func(string) bool) func(string, any) {
	return func(at string, v any) {
		r.Texts(at, v, maxPaths, hint, func(s string) bool {
			*into = append(*into, s)
			return good(s)
		})
	}
}
