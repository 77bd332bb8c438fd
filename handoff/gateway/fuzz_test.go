package gateway

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// slow gives a few bytes at a time.
type slow struct {
	left string
	size int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size)], s.left)
	s.left = s.left[n:]
	return n, nil
}

// cut returns the events of a stream, as they came.
func cut(t testing.TB, r io.Reader) (all []string) {
	t.Helper()
	events := newEventReader(r)
	for {
		raw, err := events.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all = append(all, string(raw))
	}
}

func data(events []string) string {
	var all []string
	for _, e := range events {
		if d := eventData([]byte(e)); d != nil {
			all = append(all, string(d))
		}
	}
	return strings.Join(all, "|")
}

func FuzzEvents(f *testing.F) {
	for _, e := range events {
		f.Add(strings.Join(e, ""), 3)
	}
	f.Add("data: x\r\r\ndata: {\"type\":\"error\"}\n\n: \n\n", 1)
	fuzzbound.Run(f, func(t *testing.T, text string, size int) {
		if size < 1 || len(text) > 1<<16 {
			return
		}
		want, got := cut(t, strings.NewReader(text)), cut(t, &slow{text, size})
		if strings.Join(got, "") != text || strings.Join(want, "") != text || data(got) != data(want) {
			t.Fatalf("%q became %q and %q", text, want, got)
		}
		for _, d := range catalog.Dialects() {
			m := meter{dialect: d}
			for _, e := range want {
				m.event([]byte(e))
			}
			if u := m.usage; u.Input < 0 || u.Output < 0 || u.Input > 4*maxCount {
				t.Fatalf("%+v", u)
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, w := range ways {
		f.Add([]byte(w.body))
	}
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	m := catalog.Model{Use: []catalog.Use{{Provider: "p", Model: "up"}}, Price: &catalog.Price{Input: 1, Output: 2}}
	fuzzbound.Run(f, func(t *testing.T, body []byte) {
		for _, d := range dialects {
			q, err := readRequest(d, body)
			if err != nil || q.seal("m", m, false) != nil || q.bound(100) != nil {
				continue
			}
			set := q.changes(m.Use[0], catalog.Provider{Kind: catalog.Compatible}, q.stream)
			checkEdited(t, q, bytes.Join(q.edit(set, nil), nil), set)
			input, _ := q.inputBound(catalog.Anthropic, 0)
			if worst := worst(input, q.output(), m.Price); worst.Tokens < 0 || worst.Cost < 0 || worst == (ledger.Amount{}) {
				t.Fatalf("%s: %+v", body, worst)
			}
		}
	})
}

// checkEdited: it is JSON, what was set is set once, and all else is as it was.
func checkEdited(t *testing.T, q *request, edited []byte, set map[string][]byte) {
	t.Helper()
	if err := strictjson.Check(edited, strictjson.Rules{}); err != nil {
		t.Fatalf("%s became %s: %v", q.body, edited, err)
	}
	got := map[string]string{}
	for name, value := range strictjson.Members(edited) {
		got[name] = string(value)
	}
	for name, value := range set {
		if got[name] != string(value) {
			t.Fatalf("%s of %s is %s", name, edited, got[name])
		}
		delete(got, name)
	}
	for _, f := range q.fields {
		if _, changed := set[f.name]; !changed && got[f.name] != string(f.value) {
			t.Fatalf("%s of %s is %s", f.name, edited, got[f.name])
		}
		delete(got, f.name)
	}
	if len(got) != 0 {
		t.Fatalf("%s has more: %v", edited, got)
	}
}
