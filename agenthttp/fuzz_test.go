package agenthttp

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/strictjson"
)

var fuzzLimits = Limits{Line: 64, Event: 128, Stream: 4096}

// FuzzDecoder reads whatever comes, whole and in pieces: the same comes out, and never
// more than the limits allow.
func FuzzDecoder(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.in), uint8(3))
	}
	f.Add([]byte("data: "+strings.Repeat("x", 70)), uint8(1))
	f.Add([]byte(strings.Repeat("data: xxxxxxxx\n", 20)), uint8(7))
	f.Fuzz(func(t *testing.T, raw []byte, piece uint8) {
		whole, d, err := messages(bytes.NewReader(raw), fuzzLimits)
		for split, r := range map[string]io.Reader{
			"bytes": iotest.OneByteReader(bytes.NewReader(raw)), "pieces": &pieces{raw, int(piece)%17 + 1}, "with its end": iotest.DataErrReader(bytes.NewReader(raw)),
		} {
			got, other, otherErr := messages(r, fuzzLimits)
			if diff := cmp.Diff(whole, got); diff != "" || describe(err) != describe(otherErr) || d.Unfinished() != other.Unfinished() || d.Retry() != other.Retry() {
				t.Fatalf("%s: %s %v %v", split, diff, err, otherErr)
			}
		}
		for _, m := range whole {
			if int64(len(m.Name)+len(m.Data)+len(m.LastID)) > fuzzLimits.Event+int64(len(defaultName)) || m.Name == "" {
				t.Fatalf("%+v", m)
			}
		}
		if most := 4 * (fuzzLimits.Event + 3*fuzzLimits.Line); int64(cap(d.line)+cap(d.data)) > most {
			t.Fatalf("it holds %d and %d bytes", cap(d.line), cap(d.data))
		}
	})
}

func describe(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// pieces reads n bytes at a time.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.n, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// FuzzRoundTrip reads what Encoder wrote: the same message, whatever stands in it, and
// nothing of the comments around it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("final", `{"a": 1}`, "7", "beat")
	f.Add("", "", "", "")
	f.Add(" a", "\n\r\n\r", " 1 ", "\ndata: x\n\n")
	f.Add(":", "data: x\n\nevent: y", "\ufeff", "\r\r")
	f.Add("\xff", "\xe2\x82", "\xed\xa0\x80", "\x00")
	f.Fuzz(func(t *testing.T, name, data, id, comment string) {
		var b bytes.Buffer
		e := NewEncoder(&b)
		if err := e.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if e.Write(Message{Name: name, Data: data, LastID: id}) != nil {
			if strings.ContainsAny(name+id, "\r\n\x00") && b.String() != "" {
				return
			}
			t.Fatal("it refuses what can be written")
		}
		if err := e.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if name == "" {
			name = defaultName
		}
		want := []Message{{Name: text(name), Data: text(lineEnds.Replace(data)), LastID: text(id)}}
		got, d, err := messages(&b, Limits{})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || d.Unfinished() {
			t.Fatalf("%v %s", err, diff)
		}
	})
}

func text(s string) string { return string(toText([]byte(s))) }

// FuzzParse reads documents of any kind: what is taken keeps its promises.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"request_id":"r","task_type":"t","ok":true,"outputs":{},"inputs":null,"warnings":["w",{}]}`))
	f.Add([]byte(`{"request_id":"r","status":"error"}`))
	f.Add([]byte(`{"detail":{"request_id":"r","ok":false,"outputs":{},"warnings":[]}}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		asked := Request{RequestID: "r", TaskType: "t"}
		response, err := ParseResponse(raw, asked)
		if err == nil && (response.RequestID != "r" || response.OK && response.Outputs == nil) {
			t.Fatalf("%+v", response)
		}
		if err == nil {
			written, err := strictjson.Encode(response)
			if again, err2 := ParseResponse(written, asked); err != nil || err2 != nil || again.OK != response.OK {
				t.Fatalf("%v %v %s", err, err2, written)
			}
		}
		request, err := ParseRequest(raw)
		if err == nil && request.Check() != nil {
			t.Fatalf("%v", request.Check())
		}
		_, _ = refused(raw, asked)
		if _, err := eventOf(Message{Name: "", Data: string(raw)}); err == nil && checkJSON(raw) != nil {
			t.Fatal("an event that is no JSON")
		}
	})
}
