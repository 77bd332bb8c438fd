package agent

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func FuzzACP(f *testing.F) {
	fuzzTurn(f, ACP, acpAgent, `"session/prompt"`)
}

func FuzzStreamJSON(f *testing.F) {
	fuzzTurn(f, StreamJSON, lineAgent, `"type":"user"`)
}

// fuzzTurn has a program answer a prompt with foreign bytes. A turn that two processes lead ends
// as one that a single process leads.
func fuzzTurn(f *testing.F, protocol Protocol, react func(*program, string), prompted string) {
	whole := newProgram(react)
	d, _ := NewDialog(protocol, whole.pipes(0), State{}, &journal{choose: "y"}, Options{})
	_, _ = d.Turn(f.Context(), "hello")
	d.Close()
	f.Add(whole.stdout, uint8(4))
	f.Add([]byte("\uFEFF\x1b[0m{\"type\":\"result\",\"n\":NaN,\"result\":\"\xe9\t\\ud83d\"}\n{\"id\":\"aod-3-prompt\",\"result\":\"x"), uint8(3))
	f.Add([]byte("\x00\n{\n"+strings.Repeat("[", 100)+"\nhalf a li"), uint8(2))
	fuzzbound.Run(f, func(t *testing.T, stdout []byte, cut uint8) {
		writes := func(p *program, line string) {
			if p.ended || !strings.Contains(line, prompted) {
				react(p, line)
				return
			}
			p.stdout = append(p.stdout, stdout...)
			p.exits()
		}
		once := &journal{choose: "y"}
		reply, err := fuzzedTurn(t, protocol, newProgram(writes), State{}, once)
		p, first, second := newProgram(writes), &journal{choose: "y", dies: 1 + int(cut)}, &journal{choose: "y"}
		again, againErr := fuzzedTurn(t, protocol, p, State{}, first)
		if errors.Is(againErr, errDied) {
			again, againErr = fuzzedTurn(t, protocol, p, first.states[len(first.states)-1], second)
		}
		events := cmp.Diff(once.told(), append(first.told(), second.told()...))
		if diff := cmp.Diff(reply, again); diff != "" || events != "" || textOf(err) != textOf(againErr) {
			t.Errorf("two processes end with %v, one with %v: %s %s", againErr, err, diff, events)
		}
	})
}

func fuzzedTurn(t *testing.T, protocol Protocol, p *program, from State, j *journal) (Reply, error) {
	d, err := NewDialog(protocol, p.pipes(from.Since), from, j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return d.Turn(t.Context(), "hello")
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzRPCFraming(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}noise\nContent-Length: 1\nX: y\n\n1"))
	f.Add([]byte("content-length: 99999999999999999999\r\n\r\n"))
	f.Add([]byte("one\r\n\ntwo"))
	fuzzbound.Run(f, func(t *testing.T, stdout []byte) {
		for _, framing := range []Framing{Lines, Length} {
			from, size := newMessages(bytes.NewReader(stdout), framing), int64(0)
			for {
				m, err := from.next()
				if size += m.size; err != nil {
					if framing == Lines && (!errors.Is(err, io.EOF) || size != int64(len(stdout))) {
						t.Errorf("lines end after %d of %d bytes: %v", size, len(stdout), err)
					}
					break
				}
				if m.size < 1 || int64(len(m.body)) > m.size || size > int64(len(stdout)) {
					t.Errorf("a message of %d bytes takes %d, the end is at %d of %d", len(m.body), m.size, size, len(stdout))
				}
			}
			body := bytes.ReplaceAll(stdout, []byte("\n"), nil)
			body = bytes.ReplaceAll(body, []byte("\r"), nil)
			m, err := newMessages(bytes.NewReader(frame(framing, bytes.Clone(body))), framing).next()
			if err != nil || !bytes.Equal(m.body, body) {
				t.Errorf("what was framed isn't read again: %v", err)
			}
		}
	})
}

// FuzzMend holds that what is JSON stays what it is, and that mending ends.
func FuzzMend(f *testing.F) {
	f.Add([]byte(`{"a":"\u00e9\\\"","b":[1e400,null]}`))
	f.Add([]byte("\x1b]\x1b\\\x1b[0m\uFEFF{\"a\":NaN,\"\t\":-Infinity}\xff"))
	fuzzbound.Run(f, func(t *testing.T, text []byte) {
		mended := mend(text)
		if again := mend(mended); strictjson.Check(mended, strictjson.Rules{}) == nil && !bytes.Equal(again, mended) {
			t.Errorf("%q is mended to %q, and that to %q", text, mended, again)
		}
		if strictjson.Check(text, strictjson.Rules{}) == nil && !bytes.Equal(text, mended) {
			t.Errorf("%q is JSON, and was mended to %q", text, mended)
		}
	})
}
