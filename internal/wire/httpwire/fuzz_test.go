package httpwire

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

var fuzzLimits = EventLimits{Line: 64, Event: 128, Stream: 4096}

// FuzzEventReader reads whatever comes, whole and in pieces: the same comes out, and never
// more than the limits allow.
func FuzzEventReader(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.in), uint8(3))
	}
	f.Add([]byte("data: "+strings.Repeat("x", 70)), uint8(1))
	f.Add([]byte(strings.Repeat("data: xxxxxxxx\n", 20)), uint8(7))
	fuzzbound.Run(f, func(t *testing.T, raw []byte, piece uint8) {
		whole, d, err := messages(bytes.NewReader(raw), fuzzLimits)
		for split, r := range map[string]io.Reader{
			"bytes": iotest.OneByteReader(bytes.NewReader(raw)), "pieces": &pieces{raw, int(piece)%17 + 1}, "with its end": iotest.DataErrReader(bytes.NewReader(raw)),
		} {
			got, other, otherErr := messages(r, fuzzLimits)
			if diff := cmp.Diff(whole, got); diff != "" || errorText(err) != errorText(otherErr) || d.Unfinished() != other.Unfinished() {
				t.Fatalf("%s: %s %v %v", split, diff, err, otherErr)
			}
		}
		for _, m := range whole {
			if int64(len(m.Name)+len(m.Data)+len(m.LastID)) > fuzzLimits.Event+int64(len(DefaultEventName)) || m.Name == "" {
				t.Fatalf("%+v", m)
			}
		}
		if most := 4 * (fuzzLimits.Event + 3*fuzzLimits.Line); int64(cap(d.line)+cap(d.data)) > most {
			t.Fatalf("it holds %d and %d bytes", cap(d.line), cap(d.data))
		}
	})
}

func errorText(err error) string {
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

// FuzzRoundTrip reads what EventWriter wrote: the same message, whatever stands in it, and
// nothing of the comments around it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("final", `{"a": 1}`, "7", "beat")
	f.Add("", "", "", "")
	f.Add(" a", "\n\r\n\r", " 1 ", "\ndata: x\n\n")
	f.Add(":", "data: x\n\nevent: y", "\ufeff", "\r\r")
	f.Add("\xff", "\xe2\x82", "\xed\xa0\x80", "\x00")
	fuzzbound.Run(f, func(t *testing.T, name, data, id, comment string) {
		var b bytes.Buffer
		e := NewEventWriter(&b)
		if err := e.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if e.Write(Event{Name: name, Data: data, LastID: id}) != nil {
			if strings.ContainsAny(name+id, "\r\n\x00") && b.String() != "" {
				return
			}
			t.Fatal("it refuses what can be written")
		}
		if err := e.Comment(comment); err != nil {
			t.Fatal(err)
		}
		if name == "" {
			name = DefaultEventName
		}
		want := []Event{{Name: text(name), Data: text(lineEnds.Replace(data)), LastID: text(id)}}
		got, d, err := messages(&b, wide)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || d.Unfinished() {
			t.Fatalf("%v %s", err, diff)
		}
	})
}

func text(s string) string { return string(toText([]byte(s))) }
