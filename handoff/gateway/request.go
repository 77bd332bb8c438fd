package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// request is a body that was read strictly, and stays bytes.
type request struct {
	dialect *dialect
	body    []byte
	fields  []field
	model   string
	stream  bool
	choices int64 // answers that are asked for at once
	seen    seen

	cap  int64    // tokens of each answer; 0 for embeddings
	caps []string // the fields that the request bounds it with
}

// field is a field at the top of a body.
type field struct {
	name       string
	value      []byte
	start, end int // of the value, in the body
}

// maxChoices is how many answers one request may ask for.
const maxChoices = 128

// readRequest reads a body. The error is a *Refusal.
func readRequest(d *dialect, body []byte) (*request, error) {
	if err := strictjson.Check(body, strictjson.Rules{}); err != nil {
		return nil, refuseJSON(err)
	}
	if strictjson.NewCursor(body).Peek() != '{' {
		return nil, refuse(http.StatusBadRequest, RuleRequest, "the body isn't a JSON object").
			hint("send an object with a model")
	}
	q := &request{dialect: d, body: body, choices: 1}
	for name, value := range strictjson.Members(body) {
		start := cap(body) - cap(value) // a value is a part of the body
		q.fields = append(q.fields, field{name, value, start, start + len(value)})
	}
	if err := q.checkNames(); err != nil {
		return nil, err
	}
	return q, q.readFields()
}

func refuseJSON(err error) *Refusal {
	r := refuse(http.StatusBadRequest, RuleRequest, "the body is not the JSON that every reader reads alike: %s", err).
		hint("send one object of JSON in UTF-8")
	var bad *strictjson.Error
	if errors.As(err, &bad) && bad.Hint != "" {
		r.Hint = bad.Hint
	}
	return r
}

// checkNames refuses names that a reader which doesn't look at their case takes for others.
func (q *request) checkNames() error {
	for _, f := range q.fields {
		if slices.Contains(q.dialect.known, f.name) || slices.Contains(sealed, f.name) {
			continue
		}
		for _, names := range [][]string{q.dialect.known, sealed} {
			for _, name := range names {
				if strings.EqualFold(name, f.name) {
					return refuseCase(f.name, name)
				}
			}
		}
	}
	return nil
}

func refuseCase(written, meant string) *Refusal {
	return refuse(http.StatusBadRequest, RuleField, "the field %s is nearly %q", fault.Quote(written), meant).
		hint("write %s", meant)
}

func (q *request) readFields() error {
	for _, f := range q.fields {
		switch {
		case f.name == "model":
			q.model = strictjson.Text(f.value)
		case f.name == "stream" && !isNull(f.value):
			if q.stream = string(f.value) == "true"; !q.stream && string(f.value) != "false" {
				return refuse(http.StatusBadRequest, RuleRequest, "stream is neither true nor false").
					hint("write true or false")
			}
		case f.name == "n" && !isNull(f.value):
			n, ok := whole(f.value)
			if !ok || n > maxChoices {
				return refuse(http.StatusBadRequest, RuleRequest, "n isn't a number from 1 to %d", maxChoices).
					hint("leave it out for one answer")
			}
			q.choices = n
		}
	}
	if q.model == "" {
		return refuse(http.StatusBadRequest, RuleModel, "the request names no model").
			hint("GET /v1/models lists what can be asked")
	}
	return nil
}

// bound sets the cap of each answer: the least of the request's own and of what it may be.
func (q *request) bound(most int64) error {
	if len(q.dialect.caps) == 0 {
		return nil
	}
	asked := int64(0)
	for _, f := range q.fields {
		if !slices.Contains(q.dialect.caps, f.name) || isNull(f.value) {
			continue
		}
		n, ok := whole(f.value)
		if !ok {
			return refuse(http.StatusBadRequest, RuleRequest, "%s isn't a whole number from 1", f.name).
				hint("write how many tokens the answer may have")
		}
		q.caps, asked = append(q.caps, f.name), max(asked, n)
	}
	q.cap = most
	if asked > 0 {
		q.cap = min(asked, most)
	}
	return nil
}

// output is the most tokens that all answers to the request can have. What is predicted and
// doesn't come is charged like an answer.
func (q *request) output() int64 { return (q.cap + int64(len(q.field("prediction")))) * q.choices }

// guess is how many tokens the request and its answers may be, for its pace.
func (q *request) guess() int64 {
	const bytesEach = 4
	return (int64(len(q.body))-q.seen.imageBytes)/bytesEach + q.output()
}

// field returns the value of a field, nil where there is none.
func (q *request) field(name string) []byte {
	for _, f := range q.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// changes are the fields that a provider gets another value of. streams says that it is asked for a stream.
func (q *request) changes(use catalog.Use, p catalog.Provider, streams bool) map[string][]byte {
	model, _ := strictjson.Encode(use.Model) // a text can be written
	set := map[string][]byte{"model": model}
	most := strconv.AppendInt(nil, q.cap, 10)
	for _, name := range q.caps {
		if n, _ := whole(q.field(name)); n > q.cap {
			set[name] = most
		}
	}
	if len(q.caps) == 0 && q.cap > 0 {
		set[capName(q.dialect, p)] = most
	}
	if q.dialect.name == catalog.Responses {
		set["store"] = []byte("false")
	}
	if streams && !q.stream {
		set["stream"] = []byte("true")
	}
	if streams && q.countsStream(p) {
		set["stream_options"] = withUsage(q.field("stream_options"))
	}
	return set
}

// countsStream reports whether a provider has to be asked for the usage of a stream.
func (q *request) countsStream(p catalog.Provider) bool {
	return q.dialect.name == catalog.Chat && !p.NoUsage && !q.wantsUsage()
}

// wantsUsage reports whether the request itself asks for the usage of a stream.
func (q *request) wantsUsage() bool {
	return string(member(q.field("stream_options"), "include_usage")) == "true"
}

func withUsage(options []byte) []byte {
	changed, err := strictjson.Set(options, []string{"include_usage"}, []byte("true"))
	if err != nil {
		return []byte(`{"include_usage":true}`)
	}
	return changed
}

// renamed are the fields that a provider gets by another name: OpenAI's newer models take no max_tokens.
// Where a request has both, the old one becomes null.
func (q *request) renamed(p catalog.Provider, set map[string][]byte) map[string]string {
	const old = "max_tokens"
	if !slices.Contains(q.caps, old) || capName(q.dialect, p) == old {
		return nil
	}
	own := capName(q.dialect, p)
	value := cmp.Or(string(set[old]), string(q.field(old)))
	if q.field(own) == nil {
		set[old] = []byte(value)
		return map[string]string{old: own}
	}
	if isNull(q.field(own)) {
		set[own] = []byte(value)
	}
	set[old] = []byte("null")
	return nil
}

// capName is the field with which a provider bounds an answer.
func capName(d *dialect, p catalog.Provider) string {
	if d.name == catalog.Chat && p.Kind == catalog.OpenAI {
		return "max_completion_tokens" // its reasoning models take no other
	}
	return d.caps[0]
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// whole reads a whole number from 1 that is written as one.
func whole(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil && n > 0 && n <= 1<<40
}

// member returns the value of a field of an object, nil where there is none.
func member(object []byte, path ...string) []byte {
	for _, want := range path {
		var found []byte
		for name, value := range strictjson.Members(object) {
			if name == want {
				found = value
				break
			}
		}
		object = found
	}
	return object
}

// segments are a body in parts, most of which lie in the one that came: a body of 32 MiB
// isn't copied to change a word of it.
type segments [][]byte

// edit returns the body with other values of some fields, and other names of some of these.
// Fields that aren't there come
// first; everything else stays byte for byte.
func (q *request) edit(set map[string][]byte, as map[string]string) segments {
	fields := slices.DeleteFunc(slices.Clone(q.fields), func(f field) bool { return set[f.name] == nil })
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.start, b.start) })
	at := bytes.IndexByte(q.body, '{') + 1
	parts := segments{q.body[:at], q.added(set)}
	for _, f := range fields {
		before := q.body[at:f.start]
		if name := as[f.name]; name != "" {
			end := bytes.LastIndexByte(before, '"') // of its own name, which has no quote in it
			start := bytes.LastIndexByte(before[:end], '"') + 1
			parts = append(parts, before[:start], []byte(name))
			before = before[end:]
		}
		parts = append(parts, before, set[f.name])
		at = f.end
	}
	return append(parts, q.body[at:])
}

// added writes the fields that the body doesn't have.
func (q *request) added(set map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if q.field(name) != nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		key, _ := strictjson.Encode(name) // a text can be written
		b.Write(key)
		b.WriteByte(':')
		b.Write(set[name])
	}
	if b.Len() > 0 { // there is a model behind it, at least
		b.WriteByte(',')
	}
	return b.Bytes()
}

func (s segments) size() (n int64) {
	for _, part := range s {
		n += int64(len(part))
	}
	return n
}

func (s segments) reader() io.ReadCloser {
	readers := make([]io.Reader, len(s))
	for i, part := range s {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...))
}
