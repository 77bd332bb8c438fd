//go:build linux

package pid1

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestStartMessageArrivesAsItWasSent(t *testing.T) {
	for name, sent := range map[string]initbin.StartMessage{
		"nothing to change": {},
		"files":             {Stdin: "/in", Stdout: "/out"},
		"arguments":         {Args: []string{"a", "", "=", "é\n"}},
		"an environment":    {Env: []string{"A=", "B=a=b c"}},
		"both":              {Args: []string{"A=b"}, Env: []string{"B=c"}},
		"a megabyte":        {Args: []string{strings.Repeat("x", initreport.MaxStartBytes-5)}},
		"thousands":         {Env: slices.Repeat([]string{"A=b"}, initreport.MaxStartTexts-3)},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := sent.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			got, failed := received(t, raw)
			if failed != nil {
				t.Fatalf("%+v", *failed)
			}
			want := startMessage{sent.Stdin, sent.Stdout, slices.Concat([]string{}, sent.Args), slices.Concat([]string{}, sent.Env)}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(startMessage{}), equalEmpty); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var equalEmpty = cmp.Transformer("all", func(s []string) string { return strings.Join(s, "\x00") })

func TestStartMessageIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ sent, wrong string }{
		"no length":                        {"\x00\x00\x00\x00", "its length"},
		"a length beyond the limit":        {"\x00\x10\x00\x01", "its length"},
		"an absurd length":                 {"\xff\xff\xff\xff", "its length"},
		"one byte":                         {framed("\x00"), "its number of texts"},
		"two texts":                        {framed("\x00\x00"), "its number of texts"},
		"a text that doesn't end":          {framed("\x00\x000\x00A=b"), "its number of texts"},
		"too many texts":                   {framed(strings.Repeat("\x00", initreport.MaxStartTexts+1)), "its number of texts"},
		"no number":                        {framed("\x00\x00\x00"), "its number of arguments"},
		"another number":                   {framed("\x00\x000x1\x00a\x00"), "its number of arguments"},
		"another form of it":               {framed("\x00\x00+1\x00a\x00"), "its number of arguments"},
		"fewer than none":                  {framed("\x00\x00-1\x00a\x00"), "its number of arguments"},
		"more than there are":              {framed("\x00\x002\x00a\x00"), "its number of arguments"},
		"more than a number holds":         {framed("\x00\x0099999999999999999999\x00a\x00"), "its number of arguments"},
		"an entry without a value":         {framed("\x00\x001\x00a\x00A\x00"), "its environment"},
		"an entry without a name":          {framed("\x00\x000\x00=a\x00"), "its environment"},
		"a host that hung up":              {"", ""},
		"a host that hung up in a length":  {"\x00\x00\x00", ""},
		"a host that hung up after it":     {"\x00\x00\x00\x05", ""},
		"a host that hung up in a message": {"\x00\x00\x00\x05\x00\x000\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := abandoned
			if c.wrong != "" {
				want = ending{code: 125, startError: "the start message is not valid: " + c.wrong}
			}
			if _, failed := received(t, []byte(c.sent)); failed == nil || *failed != want {
				t.Errorf("got %+v, want %+v", failed, want)
			}
		})
	}
}

func framed(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

// received is what becomes of a message that a host sends before it hangs up.
func received(t *testing.T, raw []byte) (m startMessage, failed *ending) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	sender := os.NewFile(uintptr(fds[1]), "host")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		sender.Write(raw) // what isn't read is refused
		sender.Close()
	}()
	failed = m.receive(control(fds[0]))
	control(fds[0]).close()
	<-sent
	return m, failed
}

func TestCompleteChangesTheCommand(t *testing.T) {
	c := command{argv: []string{"p", "a"}, stdin: "/in", stdout: "/out"}
	c.complete(startMessage{stdout: "/new", args: []string{"b"}, env: []string{"A=b"}})
	want := command{argv: []string{"p", "a", "b"}, env: []string{"A=b"}, stdin: "/in", stdout: "/new"}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(command{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzStartMessage(f *testing.F) {
	for _, body := range []string{"\x00\x000\x00", "/in\x00/out\x002\x00a\x00\x00A=b\x00", "\x00\x001\x00", "\x00\x0001\x00a\x00", ""} {
		f.Add([]byte(body))
	}
	fuzzbound.Run(f, func(t *testing.T, body []byte) {
		var m startMessage
		wrong := m.parse(string(body))
		again, err := initbin.StartMessage{Stdin: m.stdin, Stdout: m.stdout, Args: m.args, Env: m.env}.Append(nil)
		switch {
		case wrong != "" && (m.args != nil || m.env != nil || m.stdin != "" || m.stdout != ""):
			t.Errorf("%q left %+v", body, m)
		case wrong == "" && err != nil && len(body) <= initreport.MaxStartBytes:
			t.Errorf("%q was taken, a host refuses it: %v", body, err)
		case wrong == "" && err == nil && string(again) != framed(string(body)):
			t.Errorf("%q was taken, a host sends %q", body, again)
		}
	})
}
