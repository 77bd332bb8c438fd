package relay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is for what has to happen, however busy the machine is.
const patience = time.Minute

// far is the far end of a session: the streams of a server that a test plays.
type far struct {
	t      *testing.T
	stdin  *bufio.Reader // what the session writes
	stdout *io.PipeWriter

	mu    sync.Mutex
	noise []string
}

// talkWith connects a session with a server that the test plays.
func talkWith(t *testing.T, s *Session) *far {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	f := &far{t: t, stdin: bufio.NewReader(inR), stdout: outW}
	talked := make(chan struct{})
	go func() {
		defer close(talked)
		s.Talk(inW, outR, f.note)
		_ = outR.Close()
	}()
	t.Cleanup(func() { _ = outW.Close(); _ = inR.Close(); wait(t, talked) })
	return f
}

func (f *far) note(line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noise = append(f.noise, string(line))
}

// says writes lines of the server's.
func (f *far) says(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(f.stdout, line+"\n") // a session that is over takes nothing
	}
}

// hears returns the next line that the server gets.
func (f *far) hears() string {
	f.t.Helper()
	line, err := f.stdin.ReadString('\n')
	if err != nil {
		f.t.Fatalf("the server hears %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// client keeps what a session's client gets.
type client struct {
	t    *testing.T
	got  chan string
	fail error
}

func newTestClient(t *testing.T) *client { return &client{t: t, got: make(chan string, 5000)} }

func (c *client) send(message []byte) error {
	if c.fail != nil {
		return c.fail
	}
	c.got <- string(message)
	return nil
}

func (c *client) next() string {
	c.t.Helper()
	select {
	case message := <-c.got:
		return message
	case <-time.After(patience):
		c.t.Fatal("the client gets nothing")
	}
	return ""
}

// asks has the session take a message of the client's.
func asks(t *testing.T, s *Session, message string) {
	t.Helper()
	if err := s.FromClient(t.Context(), []byte(message)); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it doesn't end")
	}
}

func call(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

func result(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, id)
}

func codeOf(t *testing.T, message string) int {
	t.Helper()
	var m struct{ Error failure }
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		t.Fatalf("%v in %.200s", err, message)
	}
	return m.Error.Code
}
