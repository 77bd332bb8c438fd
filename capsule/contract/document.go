package contract

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// report is what is wrong with a document.
type report struct {
	file     string // for findings
	findings []fault.Finding
	full     bool
}

func (r *report) add(f fault.Finding) {
	if r.full {
		return
	}
	f.File, f.Pointer = r.file, fault.Clip(f.Pointer, strictjson.MaxPointerBytes)
	r.findings = append(r.findings, f)
	if len(r.findings) == MaxFindings {
		r.full = true
		r.findings = append(r.findings, fault.Finding{File: r.file, Message: "there are more problems than these"})
	}
}

func (r *report) fail(pointer, hint, format string, args ...any) {
	r.add(fault.Finding{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *report) warn(pointer, hint, format string, args ...any) {
	r.add(fault.Finding{Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// document is what schemas stand in, and where their references lead.
type document struct {
	value    any
	rootless bool             // the document as a whole isn't a schema: it is a schema.json
	drafts   map[string]draft // that "$schema" declares: by the pointer of the document or side
	report   *report
}

// read decodes the document, which has to be an object.
func (d *document) read(raw []byte) (map[string]any, bool) {
	if len(raw) > maxContractBytes {
		d.report.fail("", "describe less, or move examples elsewhere", "it has %d bytes, the limit is %d", len(raw),
			maxContractBytes)
		return nil, false
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		d.report.fail("", `write {"input": {"type": "object"}, "output": {"type": "object"}}`, "it is empty")
		return nil, false
	}
	v, err := strictjson.Decode(raw)
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		d.report.add(fault.Finding{
			Line: bad.Line, Pointer: bad.Pointer, Message: "not valid JSON: " + bad.Error(),
			Hint: bad.Hint,
		})
		return nil, false
	}
	top, ok := v.(map[string]any)
	if !ok {
		d.report.fail("", `write {"input": {"type": "object"}, "output": {"type": "object"}}`,
			"expected an object, got %s", kindOf(v))
	}
	d.value = v
	d.declare(top, "")
	return top, ok
}

// draft is a version of JSON Schema. Contracts that declare none are read as draft-07
// that has the newer keywords as well: generators often leave "$schema" out.
type draft uint8

const (
	undeclared draft = iota
	draft4
	draft6
	draft7
	draft2019
	draft2020
)

var draftNames = []string{"", "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"}

var draftURI = lazyregexp.New(`^https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?$`)

func draftNamed(uri string) (draft, bool) {
	match := draftURI().FindStringSubmatch(uri)
	if match == nil {
		return undeclared, false
	}
	return draft(slices.Index(draftNames, match[1])), true //nolint:gosec // there are six
}

// String is the name of the draft as it reads in a sentence.
func (d draft) String() string {
	if d == undeclared {
		d = draft7
	}
	return strings.ReplaceAll(draftNames[d], "/", " ")
}

// declare notes the draft of the document, or of one of its sides.
func (d *document) declare(v any, pointer string) {
	m, _ := v.(map[string]any)
	uri, _ := m["$schema"].(string)
	if draft, ok := draftNamed(uri); ok {
		d.drafts[pointer] = draft
	}
}

// side returns the pointer of the side in which a place lies, "" for none.
func (d *document) side(pointer string) string {
	for _, side := range []string{"/input", "/output"} {
		if d.rootless && (pointer == side || strings.HasPrefix(pointer, side+"/")) {
			return side
		}
	}
	return ""
}

// draftAt is the draft that holds at a place.
func (d *document) draftAt(pointer string) draft {
	if draft, ok := d.drafts[d.side(pointer)]; ok {
		return draft
	}
	return d.drafts[""]
}

// newerKeywords are those of later drafts that can be translated, with the draft that
// brought them and what earlier ones have for it.
var newerKeywords = map[string]struct {
	since draft
	hint  string
}{
	"prefixItems":       {draft2020, `write the list as "items": [...] and what follows it as "additionalItems"`},
	"dependentRequired": {draft2019, `write "dependencies": {"field": ["other"]}`},
	"dependentSchemas":  {draft2019, `write "dependencies": {"field": {...}}`},
	"minContains":       {draft2019, `write "contains", which asks for one at least, or "minItems"`},
	"maxContains":       {draft2019, `write "contains" or "maxItems"`},
}

// untranslatable are keywords that draft-07 has nothing for.
var untranslatable = map[string]string{
	"unevaluatedProperties": `write all properties in one schema with "additionalProperties"`,
	"unevaluatedItems":      `write "additionalItems", or "items" beside "prefixItems"`,
	"$dynamicRef":           `write "$ref": "#/definitions/name"`,
	"$recursiveRef":         `write "$ref": "#/definitions/name"`,
	"$dynamicAnchor":        `put the schema under "definitions"`,
	"$recursiveAnchor":      `put the schema under "definitions"`,
	"$anchor":               `put the schema under "definitions" and write "$ref": "#/definitions/name"`,
}

// tooNew refuses a keyword that the draft doesn't know, or that can't be translated.
func (d *document) tooNew(key, at string) bool {
	draft := d.draftAt(at)
	hint, refused := untranslatable[key]
	if refused && draft >= draft2019 {
		d.report.fail(at, hint, "contracts are held to draft-07, which has nothing for %q", key)
		return true
	}
	if newer, ok := newerKeywords[key]; ok && draft != undeclared && draft < newer.since {
		hint, refused = newer.hint, true
	}
	if refused {
		d.report.fail(at, hint, "%s does not know %q and would ignore it", draft, key)
	}
	return refused
}

const localRefHint = `copy the schema into "definitions" and refer to it as "#/definitions/name"`

// local reads a reference as a path in this document.
func (d *document) local(ref, at string) (path []string, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		d.report.fail(at, localRefHint, "%s refers to another document; nothing is ever fetched or read", quote(ref))
		return nil, false
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		d.report.fail(at, localRefHint, "%s isn't a JSON pointer", quote(ref))
		return nil, false
	}
	return strictjson.Path(pointer), true
}

// resolve finds what a reference means, and nowhere but in this document.
func (d *document) resolve(ref, at string) (pointer string, value any, ok bool) {
	tokens, ok := d.local(ref, at)
	if !ok {
		return "", nil, false
	}
	for _, base := range d.bases(at) {
		path := append(slices.Clone(base), tokens...)
		if len(path) == 0 && d.rootless {
			d.report.fail(at, `write "#/input" or "#/output"`,
				`"#" is the whole of schema.json, which isn't a schema itself`)
			return "", nil, false
		}
		if value, ok = strictjson.Lookup(d.value, path); ok {
			return exactPointer(path), value, true
		}
	}
	d.report.fail(at, `references start at the top of the document, such as "#/definitions/name"`,
		"%s refers to something that isn't there", quote(ref))
	return "", nil, false
}

// bases are where references at a place may start: at the top of the document, and in a
// schema.json also at the side that they stand in, as what a generator wrote has it. A
// side that declares its draft is a document of its own first.
func (d *document) bases(at string) [][]string {
	side := d.side(at)
	if side == "" {
		return [][]string{nil}
	}
	own := []string{side[1:]}
	if _, declared := d.drafts[side]; declared {
		return [][]string{own, nil}
	}
	return [][]string{nil, own}
}

// exactPointer is strictjson.Pointer without its limit: two places are never one.
func exactPointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		fmt.Fprintf(&b, "/%s", strictjson.Escape(token))
	}
	return b.String()
}
