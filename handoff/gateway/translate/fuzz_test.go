package translate

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// pairOf is one of the ways to translate.
func pairOf(n uint8) pair { return pairs()[int(n)%len(pairs())] }

func FuzzRequest(f *testing.F) {
	for i, p := range pairs() {
		for j, s := range shapes(p.asker) {
			if j%20 == i {
				f.Add(uint8(i), []byte(s.body))
			}
		}
	}
	fuzzbound.Run(f, func(t *testing.T, n uint8, body []byte) {
		if strictjson.Check(body, strictjson.Rules{}) != nil || strictjson.NewCursor(body).Peek() != '{' {
			return
		}
		p := pairOf(n)
		got, err := New(p.asker, p.provider, body)
		if err != nil {
			checkUnsaid(t, err)
			return
		}
		if err := strictjson.Check(got.Body, strictjson.Rules{}); err != nil {
			t.Fatalf("%s: %s became %s: %v", p, body, got.Body, err)
		}
		if _, err := New(p.provider, p.provider, got.Body); err != nil {
			t.Fatalf("%s: %s became %s, which is none: %v", p, body, got.Body, err)
		}
	})
}

func checkUnsaid(t *testing.T, err error) {
	var unsaid *Error
	if !errors.As(err, &unsaid) || unsaid.Why == "" {
		t.Fatalf("%v says nothing", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for i, p := range pairs() {
		for _, s := range specs {
			f.Add(uint8(i), s.plain(p.provider))
		}
	}
	fuzzbound.Run(f, func(t *testing.T, n uint8, body []byte) {
		if strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
			return
		}
		out, err := translation(t, pairOf(n)).Answer(body, counted)
		if err != nil {
			checkUnsaid(t, err)
		} else if err := strictjson.Check(out, strictjson.Rules{Unbounded: true}); err != nil {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
	})
}

// FuzzStream: whatever comes, what goes out is a legal stream up to where it is refused.
func FuzzStream(f *testing.F) {
	for i, p := range pairs() {
		for _, s := range specs {
			f.Add(uint8(i), strings.Join(s.events(p.provider, 300), "\n"))
		}
	}
	fuzzbound.Run(f, func(t *testing.T, n uint8, lines string) {
		p := pairOf(n)
		s := translation(t, p).Stream()
		var out strings.Builder
		for line := range strings.SplitSeq(lines, "\n") {
			raw, err := s.Event([]byte(line), counted)
			out.Write(raw)
			if err != nil {
				checkUnsaid(t, err)
				return
			}
		}
		raw, err := s.End(counted)
		if err != nil {
			checkUnsaid(t, err)
			return
		}
		out.Write(raw)
		for _, data := range second(sse(t, out.String())) {
			if data != "[DONE]" && strictjson.Check([]byte(data), strictjson.Rules{Unbounded: true}) != nil {
				t.Fatalf("%s: %q became %q", p, lines, data)
			}
		}
	})
}

func second(_, all []string) []string { return all }
