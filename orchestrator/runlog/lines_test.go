package runlog

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

// linesOf returns the numbers of the lines that a filter chooses, and checks that their texts are theirs.
func linesOf(t *testing.T, tail *Tail) (got []int64) {
	t.Helper()
	_, err := tail.Drain(func(entry api.LogEntry, _ error) bool {
		if !strings.HasPrefix(entry.Text, fmt.Sprintf("line %d ", entry.Line)) {
			t.Errorf("line %d is %.20q", entry.Line, entry.Text)
		}
		got = append(got, entry.Line)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// logOf writes so many lines of different lengths, some as long as a line can be.
func logOf(t testing.TB, dir string, lines int) *File {
	t.Helper()
	log := New(dir)
	t.Cleanup(log.Close)
	for n := range lines {
		length := n % 300
		if n%100 == 50 {
			length = 16 << 10
		}
		log.Add(api.LogEntry{Text: fmt.Sprintf("line %d %s", n+1, strings.Repeat("\x01", length))})
	}
	if err := log.Err(); err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLinesAreChosenByTheirNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const last = 3000
	logOf(t, dir, last)
	for _, c := range []struct {
		wanted      api.LogFilter
		first, past int64
	}{
		{api.LogFilter{}, 1, last + 1},
		{api.LogFilter{Tail: 1}, last, last + 1},
		{api.LogFilter{Tail: 700}, last - 699, last + 1},
		{api.LogFilter{Tail: last + 1}, 1, last + 1},
		{api.LogFilter{Before: 1}, 1, 1},
		{api.LogFilter{Before: 4}, 1, 4},
		{api.LogFilter{Before: 1552, Tail: 2}, 1550, 1552},
		{api.LogFilter{Before: last + 7, Tail: 2}, last - 1, last + 1},
		{api.LogFilter{After: 2}, 3, last + 1},
		{api.LogFilter{After: last - 1}, last, last + 1},
		{api.LogFilter{After: last}, 1, 1},
		{api.LogFilter{After: last + 9}, 1, 1},
		{api.LogFilter{After: 1050, Before: 1053}, 1051, 1053},
		{api.LogFilter{After: 10, Tail: 2, Before: 50}, 48, 50},
		{api.LogFilter{After: 10, Tail: 200, Before: 50}, 11, 50},
	} {
		tail := NewTail(dir, c.wanted)
		var want []int64
		for n := c.first; n < c.past; n++ {
			want = append(want, n)
		}
		if diff := cmp.Diff(want, linesOf(t, tail)); diff != "" {
			t.Errorf("%+v: %s", c.wanted, diff)
		}
		tail.Close()
	}
	for n := int64(0); n < last; n += 29 {
		tail := NewTail(dir, api.LogFilter{After: n, Before: n + 2})
		if diff := cmp.Diff([]int64{n + 1}, linesOf(t, tail)); diff != "" {
			t.Error(diff)
		}
		tail.Close()
	}
}

func TestALongLogIsNotReadWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logOf(t, dir, 3000)
	file, err := os.Open(pathIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	start, err := startOf(file, 3000)
	if far := info.Size() - start; err != nil || info.Size() < 3<<20 || far > nearby+maxLine {
		t.Errorf("%d of %d bytes are read for the last line: %v", far, info.Size(), err)
	}
}

func TestNoLineIsMissedBehindTheLastOnes(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 10} {
		dir := t.TempDir()
		log := New(dir)
		defer log.Close()
		if before > 0 {
			log = logOf(t, dir, before)
		}
		tail := NewTail(dir, api.LogFilter{Tail: 2, Follow: true})
		defer tail.Close()
		got := linesOf(t, tail)
		log.Close()
		again := New(dir) // as another process does
		for n := before; n < before+5; n++ {
			again.Add(api.LogEntry{Text: fmt.Sprintf("line %d ", n+1)})
		}
		again.Close()
		got = append(got, linesOf(t, tail)...)
		want := []int64{9, 10, 11, 12, 13, 14, 15}
		if before == 0 {
			want = []int64{1, 2, 3, 4, 5}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLinesOfAnOlderVersionAreCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var old strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&old, `{"text":"line %d %s"}`+"\n", n+1, strings.Repeat("x", 100))
	}
	if err := os.WriteFile(pathIn(dir), []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := New(dir)
	defer log.Close()
	check := func(wanted api.LogFilter, want ...int64) {
		t.Helper()
		tail := NewTail(dir, wanted)
		defer tail.Close()
		if diff := cmp.Diff(want, linesOf(t, tail)); diff != "" {
			t.Errorf("%+v: %s", wanted, diff)
		}
	}
	check(api.LogFilter{Tail: 2}, 1999, 2000)
	log.Add(api.LogEntry{Text: "line 2001 "})
	check(api.LogFilter{Tail: 3}, 1999, 2000, 2001)
	check(api.LogFilter{Tail: 2, Before: 1001}, 999, 1000)
}

func TestALogThatIsDamagedSaysSo(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"its last line": `{"line":1}` + "\n{\n", "its first line": "{\n" + `{"line":2}` + "\n",
		"a number": `{"line":-1}` + "\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(pathIn(dir), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		tail := NewTail(dir, api.LogFilter{Tail: 1})
		if _, err := tail.Drain(func(api.LogEntry, error) bool { return true }); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		tail.Close()
	}
}
