package runtime

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestAFeedSaysWhatWasGiven(t *testing.T) {
	l := OpenLayout(t.TempDir(), "")
	if err := os.Mkdir(l.path("aod"), 0o700); err != nil {
		t.Fatal(err)
	}
	feed, err := l.OpenFeed()
	if err != nil {
		t.Fatal(err)
	}
	if err := give(feed, "hello\n"); err != nil || feed.Len() != 6 {
		t.Fatalf("%d bytes, %v", feed.Len(), err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(l.path("aod/"+feedName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("half of what a process wrote that was killed")
	f.Close()
	again, err := l.OpenFeed()
	if err != nil || again.Len() != 6 {
		t.Fatalf("%d bytes count, %v", again.Len(), err)
	}
	if err := give(again, "more\n"); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(l.path("aod/" + feedName))
	if !strings.HasPrefix(string(raw[8:]), "hello\nmore\n") {
		t.Errorf("it is %q", raw)
	}
	if err := again.Stage(make([]byte, MaxFeedBytes)); !fault.Is(err, fault.TooLarge) || again.Len() != 11 {
		t.Errorf("too much: %v, %d bytes", err, again.Len())
	}
}

func TestATailReadsOnUntilTheProgramEnds(t *testing.T) {
	l := OpenLayout(t.TempDir(), "")
	if err := os.Mkdir(l.path("aod"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("aod/"+stdoutName), []byte("old new"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	tail, err := l.OpenTail(4, ended)
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(tail)
		said <- string(all)
	}()
	f, err := os.OpenFile(l.path("aod/"+stdoutName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(" and last")
	f.Close()
	close(ended)
	select {
	case got := <-said:
		if got != "new and last" {
			t.Errorf("it read %q", got)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it reads on")
	}
	waiting, err := l.OpenTail(0, make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = waiting.Close() }()
	if _, err := io.ReadAll(waiting); err == nil {
		t.Error("a closed one ended as the program does")
	}
}

func give(f *Feed, text string) error {
	if err := f.Stage([]byte(text)); err != nil {
		return err
	}
	return f.Give(int64(len(text)))
}

// What one process has staged and another one gives is seen whole, and nothing of it before.
func TestWhatIsStagedIsSeenWhenItIsGiven(t *testing.T) {
	l := OpenLayout(t.TempDir(), "")
	if err := os.Mkdir(l.path("aod"), 0o700); err != nil {
		t.Fatal(err)
	}
	feed, err := l.OpenFeed()
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Stage([]byte("a long message of which nobody knows")); err != nil {
		t.Fatal(err)
	}
	if err := feed.Stage([]byte("hello\n")); err != nil || feed.Len() != 0 {
		t.Fatalf("%d bytes, %v", feed.Len(), err)
	}
	feed.Close()
	again, err := l.OpenFeed()
	if err != nil || again.Len() != 0 {
		t.Fatalf("%d bytes, %v", again.Len(), err)
	}
	if err := again.Give(6); err != nil || again.Len() != 6 {
		t.Fatalf("%d bytes, %v", again.Len(), err)
	}
	if raw, _ := os.ReadFile(l.path("aod/" + feedName)); string(raw[:14]) != "\x00\x00\x00\x00\x00\x00\x00\x06hello\n" {
		t.Errorf("it is %q", raw)
	}
	for _, n := range []int64{-1, MaxFeedBytes} {
		if err := again.Give(n); !fault.Is(err, fault.Internal) {
			t.Errorf("%d bytes are given: %v", n, err)
		}
	}
}
