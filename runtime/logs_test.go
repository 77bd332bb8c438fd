package runtime

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// logged returns the lines that a Log makes of a stream.
func logged(limit int64, r io.Reader) (texts []string, log *Log) {
	log = NewLog(limit, func(l LogLine) { texts = append(texts, l.Text) })
	log.drain(&Streams{Stdout: r, Stderr: strings.NewReader("")})
	log.finish()
	return texts, log
}

func TestALineThatWasCutOffIsTakenWhole(t *testing.T) {
	var got []string
	log := NewLog(1<<20, func(l LogLine) { got = append(got, l.Text) })
	log.drain(&Streams{Stdout: strings.NewReader("one\ntw"), Stderr: strings.NewReader("")}) // its connection broke
	again := NewLog(1<<20, func(l LogLine) { got = append(got, l.Text) })
	again.Skip(1, 0)
	again.drain(&Streams{Stdout: strings.NewReader("one\ntwo\nthree"), Stderr: strings.NewReader("")})
	again.finish()
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLogTakesAStreamApartIntoLines(t *testing.T) {
	full := strings.Repeat("x", maxLine)
	cases := []struct {
		name, stream string
		want         []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"the last one without its end", "a\nb", []string{"a", "b"}},
		{"empty lines", "\n\na\n\n", []string{"", "", "a", ""}},
		{"lines that end as on Windows", "a\r\nb\r\n", []string{"a", "b"}},
		{"a progress bar", "10%\r20%\r\n", []string{"10%\r20%"}},
		{"invalid UTF-8", "a\xff\xfeb\n\xc3", []string{"a\uFFFDb", "\uFFFD"}},
		{"control characters", "\x1b[2J\x00\n", []string{"\x1b[2J\x00"}},
		{"a long line", full + full + "y\n", []string{full, full, "y"}},
		{"a long line of whole characters", "x" + strings.Repeat("é", maxLine) + "\n", []string{
			"x" + strings.Repeat("é", maxLine/2-1), strings.Repeat("é", maxLine/2), "é",
		}},
		{"a long line of no characters", strings.Repeat("\x80", maxLine+1), []string{"\uFFFD", "\uFFFD"}},
	}
	for _, c := range cases {
		for how, r := range map[string]io.Reader{"": strings.NewReader(c.stream), ", byte by byte": iotest.OneByteReader(strings.NewReader(c.stream))} {
			t.Run(c.name+how, func(t *testing.T) {
				got, log := logged(1<<20, r)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				if kept, truncated := log.Bytes(); kept != int64(len(c.stream)) || truncated {
					t.Errorf("kept %d of %d bytes, truncated: %t", kept, len(c.stream), truncated)
				}
			})
		}
	}
}

func TestLogKeepsToItsLimit(t *testing.T) {
	cases := []struct {
		name, stream string
		want         []string
		kept         int64
		truncated    bool
	}{
		{"just enough", "12345678\n\n", []string{"12345678", ""}, 10, false},
		{"a line is cut at the limit", "1234\n123456\n", []string{"1234", "12345"}, 10, true},
		{"between two characters", "12345678\néé\n", []string{"12345678"}, 9, true},
		{"and what is short comes no more", "12345678\néé\n\n\n\n", []string{"12345678"}, 9, true},
		{"one line of more than all", strings.Repeat("x", maxLine*2), []string{"xxxxxxxxxx"}, 10, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			source := strings.NewReader(c.stream)
			got, log := logged(10, source)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if kept, truncated := log.Bytes(); kept != c.kept || truncated != c.truncated {
				t.Errorf("kept %d bytes, truncated: %t", kept, truncated)
			}
			if source.Len() > 0 {
				t.Errorf("%d bytes were not read: the program would stall", source.Len())
			}
		})
	}
	t.Run("no limit at all keeps nothing", func(t *testing.T) {
		if got, _ := logged(0, strings.NewReader("a\n")); got != nil {
			t.Errorf("%q", got)
		}
	})
}

func TestLogSkipsWhatWasHandedOnBefore(t *testing.T) {
	cases := []struct {
		name           string
		stdout, stderr int
		limit          int64
		want           []string
		kept           int64
		truncated      bool
	}{
		{"nothing", 0, 0, 100, []string{"a", "b", "c", "d", "e"}, 10, false},
		{"some of each", 2, 1, 100, []string{"c", "e"}, 10, false},
		{"of one alone", 0, 2, 100, []string{"a", "b", "c"}, 10, false},
		{"all", 3, 2, 100, nil, 10, false},
		{"more than there is", 9, 9, 100, nil, 10, false},
		{"and it counts against the limit", 2, 0, 5, []string{"c"}, 5, true},
		{"a line that was cut by the limit", 3, 0, 5, nil, 5, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			log := NewLog(c.limit, func(l LogLine) { got = append(got, l.Text) })
			log.Skip(c.stdout, c.stderr)
			for _, line := range []string{"a\n", "b\n", "c\n"} {
				log.add("stdout", []byte(line))
			}
			for _, line := range []string{"d\n", "e\n"} {
				log.add("stderr", []byte(line))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if kept, truncated := log.Bytes(); kept != c.kept || truncated != c.truncated {
				t.Errorf("kept %d bytes, truncated: %t", kept, truncated)
			}
		})
	}
}

func TestLogReadsBothStreamsAtOnce(t *testing.T) {
	const lines = 2000
	var log *Log
	got := map[string][]string{}
	log = NewLog(1<<20, func(l LogLine) {
		got[l.Stream] = append(got[l.Stream], l.Text)
		if kept, _ := log.Bytes(); kept == 0 || l.Time.IsZero() {
			t.Errorf("line %+v after %d bytes", l, kept)
		}
	})
	stdout, stdoutWriter := io.Pipe()
	stderr, stderrWriter := io.Pipe()
	go func() { // in turns: each stream stalls unless both are read
		for i := range lines {
			fmt.Fprintln(stdoutWriter, "out", i)
			fmt.Fprintln(stderrWriter, "err", i)
		}
		stdoutWriter.Close()
		stderrWriter.CloseWithError(errors.New("the connection broke"))
	}()
	log.drain(&Streams{Stdout: stdout, Stderr: stderr})
	for stream, word := range map[string]string{"stdout": "out", "stderr": "err"} {
		if n := len(got[stream]); n != lines || got[stream][n-1] != fmt.Sprint(word, " ", lines-1) {
			t.Errorf("%s has %d lines", stream, n)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("a\r\n\nb"), int64(3))
	f.Add([]byte("\xff\xc3\xa9\xc3\n"), int64(100))
	f.Add([]byte(strings.Repeat("é", maxLine)), int64(maxLine+1))
	fuzzbound.Run(f, func(t *testing.T, stream []byte, limit int64) {
		limit = max(limit, 0) % (4 * maxLine)
		got, log := logged(limit, strings.NewReader(string(stream)))
		kept, truncated := log.Bytes()
		if kept > limit || kept > int64(len(stream)) || truncated != (int64(len(stream)) > limit) {
			t.Errorf("kept %d of %d bytes with limit %d, truncated: %t", kept, len(stream), limit, truncated)
		}
		for _, text := range got {
			if len(text) > 3*maxLine || !utf8.ValidString(text) || strings.ContainsRune(text, '\n') {
				t.Errorf("line %q", text)
			}
		}
		whole := strings.ReplaceAll(strings.TrimSuffix(string(stream), "\n"), "\r", "") // a \r alone is an empty line
		if utf8.Valid(stream) && !truncated && len(stream) < maxLine && strings.ReplaceAll(strings.Join(got, "\n"), "\r", "") != whole {
			t.Errorf("%q became %q", stream, got)
		}
	})
}
