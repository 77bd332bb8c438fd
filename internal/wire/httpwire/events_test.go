package httpwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// wide are limits that no test meets.
var wide = EventLimits{Line: 1 << 20, Event: 1 << 20, Stream: 1 << 20}

// messages reads a stream to its end.
func messages(r io.Reader, limits EventLimits) (got []Event, d *EventReader, err error) {
	d = NewEventReader(r, limits)
	for {
		m, err := d.Next()
		if errors.Is(err, io.EOF) {
			return got, d, nil
		}
		if err != nil {
			return got, d, err
		}
		got = append(got, m)
	}
}

func message(name, data, id string) Event { return Event{Name: name, Data: data, LastID: id} }

var streams = []struct {
	name, in string
	want     []Event
}{
	{"a message", "event: final\ndata: {}\n\n", []Event{message("final", "{}", "")}},
	{"without a name", "data: x\n\n", []Event{message("message", "x", "")}},
	{"line ends of all kinds", "event: a\rdata: 1\r\revent: b\r\ndata: 2\r\n\r\ndata: 3\n\r", []Event{message("a", "1", ""), message("b", "2", ""), message("message", "3", "")}},
	{"several lines of data", "data: YHOO\ndata: +2\ndata: 10\n\n", []Event{message("message", "YHOO\n+2\n10", "")}},
	{"data that is empty", "data\n\n" + "data:\n\n" + "data\n" + "data\n\n", []Event{message("message", "", ""), message("message", "", ""), message("message", "\n", "")}},
	{"no message without data", "event: a\n\ndata: x\n\n", []Event{message("message", "x", "")}},
	{"one space is taken away", "data:x\n\ndata: x\n\ndata:  x\n\ndata:\tx\n\n", []Event{message("message", "x", ""), message("message", "x", ""), message("message", " x", ""), message("message", "\tx", "")}},
	{"comments and unknown fields", ": beat\n:\ndata: x\nDATA: y\n data: z\nfoo\n\n", []Event{message("message", "x", "")}},
	{"ids stay, an empty one takes them back", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []Event{message("message", "a", "1"), message("message", "b", "1"), message("message", "c", "")}},
	{"an id with a NUL is none", "id: 1\n\nid: 2\x003\ndata: a\n\n", []Event{message("message", "a", "1")}},
	{"one byte order mark", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []Event{message("message", "a", "")}},
	{"a half of a mark is none", "\xef\xbbdata: a\n\n", nil},
	{"a message without an end is none", "data: a\n\ndata: b\n", []Event{message("message", "a", "")}},
	{"a name that is given twice", "event: a\nevent: b\ndata: 1\n\n", []Event{message("b", "1", "")}},
	{"a colon in the data", "data: a: b\n\n", []Event{message("message", "a: b", "")}},
	{"what isn't UTF-8", "data: a\xffb\xe2\x82c\xed\xa0\x80\xf0\x9f\x98\n\n", []Event{message("message", "a\ufffdb\ufffdc\ufffd\ufffd\ufffd\ufffd", "")}},
	{"characters that break off", "data: \xf0\x90\x8d|\xe0\xa0|\xed\x9f|\xf4\x8f\xbf|\xc2\n\n", []Event{message("message", "\ufffd|\ufffd|\ufffd|\ufffd|\ufffd", "")}},
	{"bytes that begin none", "data: \xf4\x90|\xe0\x9f|\xc0\x80|\xf5\n\n", []Event{message("message", "\ufffd\ufffd|\ufffd\ufffd|\ufffd\ufffd|\ufffd", "")}},
	{"nothing", "", nil},
}

func TestEventReader(t *testing.T) {
	for _, s := range streams {
		for split, r := range map[string]io.Reader{
			"whole": strings.NewReader(s.in), "by bytes": iotest.OneByteReader(strings.NewReader(s.in)), "by halves": iotest.HalfReader(strings.NewReader(s.in)),
		} {
			t.Run(s.name+" "+split, func(t *testing.T) {
				got, _, err := messages(r, wide)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestEventReaderDoesNotWaitForMoreThanItNeeds(t *testing.T) {
	for _, in := range []string{"data: x\r\r", "data: x\n\n", "data: x\r\n\r"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, in) }()
		if m, err := NewEventReader(r, wide).Next(); err != nil || m.Data != "x" {
			t.Errorf("%q: %+v %v", in, m, err)
		}
		_ = w.Close()
	}
}

func TestEventReaderTellsOfAMessageThatBrokeOff(t *testing.T) {
	for in, want := range map[string]bool{
		"": false, "data: x\n\n": false, "data: x\n": true, "data: x": true, "data: x\n\n: beat": false, "event: x\r\n": true, "data: x\n\nd": true,
	} {
		if _, d, _ := messages(strings.NewReader(in), wide); d.Unfinished() != want {
			t.Errorf("%q: %v", in, d.Unfinished())
		}
	}
}

func TestEventReaderKeepsItsLimits(t *testing.T) {
	limits := EventLimits{Line: 10, Event: 12, Stream: 100, Whose: "the stream"}
	cases := []struct {
		name, in string
		want     error
	}{
		{"a line of the limit", "data: 7890\n\n", nil},
		{"a line of one more", "data: 78901\n\n", ErrLineTooLong},
		{"a comment of one more", ": 345678901\n\n", ErrLineTooLong},
		{"a line without an end", strings.Repeat("x", 11), ErrLineTooLong},
		{"an event of the limit", "data: 123\ndata: 123\ndata: 123\n\n", nil},
		{"an event of one more", "data: 123\ndata: 123\ndata: 1234\n\n", ErrEventTooLarge},
		{"an id counts", "id: 123456\ndata: 1\ndata: 12\ndata: 1\n\n", ErrEventTooLarge},
		{"a stream of the limit", strings.Repeat(":\n", 50), nil},
		{"a stream of one more", strings.Repeat(":\n", 51), ErrStreamTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, d, err := messages(strings.NewReader(c.in), limits)
			if !errors.Is(err, c.want) || c.want != nil && !fault.Is(err, fault.TooLarge) {
				t.Errorf("%v", err)
			}
			if _, again := d.Next(); c.want != nil && !errors.Is(again, c.want) {
				t.Errorf("it does not stay: %v", again)
			}
		})
	}
}

func TestEventReaderHandsOnWhatItsReaderSays(t *testing.T) {
	if _, _, err := messages(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: x\n\n"))), wide); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("%v", err)
	}
}

func TestEventWriter(t *testing.T) {
	var b bytes.Buffer
	e := NewEventWriter(&b)
	for _, m := range []Event{message("final", "{\n}", "7"), message("", "", ""), message("x", "a\r\nb\rc\n", "")} {
		if err := e.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Comment("beat\nagain"); err != nil {
		t.Fatal(err)
	}
	want := "id: 7\nevent: final\ndata: {\ndata: }\n\ndata: \n\nevent: x\ndata: a\ndata: b\ndata: c\ndata: \n\n: beat\n: again\n\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	for _, m := range []Event{message("a\nb", "", ""), message("a\rb", "", ""), message("", "", "a\nb"), message("", "", "a\x00b")} {
		if err := e.Write(m); !fault.Is(err, fault.Input) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// flushed counts.
type flushed struct {
	bytes.Buffer
	writes, flushes int
}

func (f *flushed) Write(b []byte) (int, error) { f.writes++; return f.Buffer.Write(b) }

func (f *flushed) Flush() error { f.flushes++; return nil }

func TestEventWriterSendsEachMessageAtOnce(t *testing.T) {
	var f flushed
	e := NewEventWriter(&f)
	for range 3 {
		if err := errors.Join(e.Write(message("a", "1\n2", "3")), e.Comment("")); err != nil {
			t.Fatal(err)
		}
	}
	if f.writes != 6 || f.flushes != 6 {
		t.Errorf("%d writes, %d flushes", f.writes, f.flushes)
	}
}

func TestEventWriterTellsThatNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	if err := NewEventWriter(w).Write(message("a", "b", "")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
