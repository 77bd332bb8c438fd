package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// auStdout is where an Agentic Unit's stdout is mounted.
const auStdout = "/run/aod/stdout"

const sizerCard = `{
  "name": "sizer", "version": "1.0.0", "description": "Counts bytes.", "capabilities": ["count"],
  "inputs": [{"media_type": "text/plain", "description": "any text"}],
  "outputs": [{"media_type": "application/json", "description": "its size"}],
  "config": {"do": {"type": "string", "description": "what to do", "default": "count"}}
}`

// addSizer gives the server an Agentic Unit that counts what it reads, or does as --do says.
func (s *server) addSizer() {
	write(s.t, filepath.Join(s.sources, "sizer", "Dockerfile"), "FROM base:1\nCMD [\"sizer\"]\n")
	write(s.t, filepath.Join(s.sources, "sizer", "agent.yaml"), "kind: au\nname: sizer\n")
}

// filter is the program of every fake container of an Agentic Unit.
func (s *server) filter(ctx context.Context, spec runtime.ContainerSpec, dirs map[string]string, stderr io.Writer) int {
	printed := func(text string) int {
		_ = os.WriteFile(dirs[auStdout], []byte(text), 0o600)
		return 0
	}
	flags := map[string]string{}
	for i, arg := range spec.Cmd {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(spec.Cmd) {
			value = spec.Cmd[i+1]
		}
		flags[name] = value
	}
	if _, asked := flags["--describe"]; asked {
		return printed(sizerCard)
	}
	fmt.Fprintln(stderr, "sizer: begins")
	switch do := flags["--do"]; do {
	case "invalid":
		return 2
	case "fail":
		return 1
	case "chat":
		return printed("here you are: {}")
	case "wait":
		select {
		case <-s.release:
		case <-ctx.Done():
		case <-enginetest.Terminated(ctx):
			return 143
		}
	}
	flag := slices.Index(spec.Entrypoint, "-stdin")
	stdin := strings.TrimPrefix(spec.Entrypoint[flag+1], "/io/input/")
	raw, err := os.ReadFile(filepath.Join(dirs["/io/input"], stdin))
	if err != nil {
		return 99
	}
	prompt, _ := json.Marshal(flags["--prompt"])
	return printed(fmt.Sprintf("{\n  \"bytes\":  %d.0,\n  \"prompt\": %s\n}\n", len(raw), prompt))
}

func TestAnAgenticUnitAnswersWithWhatItPrints(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	t.Run("exactly", func(t *testing.T) {
		a := s.do("POST", "/v1/au/sizer?prompt=the+table+%26+%3Cmore%3E&arg=--do&arg=count", "five!").wants(t, 200)
		if want := "{\n  \"bytes\":  5.0,\n  \"prompt\": \"the table \\u0026 \\u003cmore\\u003e\"\n}"; a.body != want {
			t.Errorf("%s, want %s", a.body, want)
		}
		run := a.Header.Get("AOD-Run")
		record := decode[api.Record](t, s.do("GET", "/v1/runs/"+run, "").wants(t, 200))
		if record.Kind != "au" || record.Outcome != api.Success || a.Header.Get("Location") != "/v1/runs/"+run {
			t.Errorf("%+v", record)
		}
		s.do("GET", "/v1/runs/"+run+"/output", "").wants(t, 200)
	})
	t.Run("without a body", func(t *testing.T) {
		if a := s.do("POST", "/v1/au/sizer", "").wants(t, 200); !strings.Contains(a.body, "0.0") {
			t.Error(a.body)
		}
	})
	t.Run("with a body of which nobody says the length or the type", func(t *testing.T) {
		status, body := s.raw("POST /v1/au/sizer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + token +
			"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
		if status != http.StatusOK || !strings.Contains(body, "6.0") {
			t.Errorf("%d %s", status, body)
		}
	})
	s.spoolIsEmpty(t)
}

func TestAgenticUnitsThatGiveNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	cases := []struct {
		name, path, body string
		status           int
		code             string
		ran              bool // the answer names a run
	}{
		{"exit code 2", "sizer?arg=--do&arg=invalid", "text", 422, "invalid_input", true},
		{"a type that the card doesn't take", "sizer", "\x89PNG\r\n\x1a\n\x00", 422, "invalid_input", true},
		{"an argument that the card doesn't know", "sizer?arg=--colour", "text", 422, "invalid_input", true},
		{"exit code 1", "sizer?arg=--do=fail&prompt=canary", "a canary", 502, "unit_failed", true},
		{"an output that isn't JSON", "sizer?arg=--do=chat", "text", 502, "unit_failed", true},
		{"a time that is up", "sizer?arg=--do=wait&timeout=50ms", "text", 504, "deadline", true},
		{"no such unit", "nobody", "text", 404, "not_found", false},
		{"no name of a unit", "No%2f..", "text", 404, "not_found", false},
		{"a capsule", "actor", "text", 422, "invalid_input", false},
		{"a parameter that there isn't", "sizer?promt=x", "text", 400, "bad_request", false},
		{"two prompts", "sizer?prompt=x&prompt=y", "text", 400, "bad_request", false},
		{"a prompt that isn't text", "sizer?prompt=%ff", "text", 400, "bad_request", false},
		{"a wait without end", "sizer?wait=6m", "text", 400, "bad_request", false},
		{"a timeout that is none", "sizer?timeout=soon", "text", 400, "bad_request", false},
		{"a timeout over the server's", "sizer?timeout=900h", "text", 422, "invalid_input", false},
		{"too many arguments", "sizer?" + strings.Repeat("arg=x&", 257), "text", 422, "invalid_input", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.do("POST", "/v1/au/"+c.path, c.body).wants(t, c.status)
			p := decode[httpwire.Problem](t, a)
			if p.Code != c.code || (p.Run != "") != c.ran || a.Header.Get("AOD-Run") != p.Run {
				t.Errorf("%s, AOD-Run: %s", a.body, a.Header.Get("AOD-Run"))
			}
			s.spoolIsEmpty(t)
		})
	}
	if log := s.log.String(); strings.Contains(log, "canary") || strings.Contains(log, `"kind":"unit_failed"`) {
		t.Errorf("the log tells what is none of its business: %s", log)
	}
}

func TestStdinHasItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	s := newServer(t, func(o *Options) { o.UploadBytes = limit })
	s.addSizer()
	s.do("POST", "/v1/au/sizer", strings.Repeat("x", limit)).wants(t, 200)
	s.do("POST", "/v1/au/sizer", strings.Repeat("x", limit+1)).wants(t, 413)
	s.spoolIsEmpty(t)
	t.Run("which is kept before anything comes", func(t *testing.T) {
		status, _ := s.raw("POST /v1/au/sizer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + token +
			"\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n")
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", status)
		}
	})
	t.Run("and as soon as more has come", func(t *testing.T) { // the body has no end
		status, _ := s.raw("POST /v1/au/sizer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + token +
			"\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", limit+1) + "\r\n")
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", status)
		}
		s.spoolIsEmpty(t)
	})
	t.Run("and nothing is left of a body that breaks off", func(t *testing.T) {
		status, _ := s.raw("POST /v1/au/sizer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + token +
			"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\nZZ\r\n")
		if status != http.StatusBadRequest {
			t.Errorf("status %d", status)
		}
		s.spoolIsEmpty(t)
	})
}

func TestAnAgenticUnitAskedTwice(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	first := s.do("POST", "/v1/au/sizer", "text", "Idempotency-Key: k").wants(t, 200)
	again := s.do("POST", "/v1/au/sizer", "text", "Idempotency-Key: k").wants(t, 200)
	if first.Header.Get("AOD-Run") != again.Header.Get("AOD-Run") || again.Header.Get("Idempotent-Replayed") != "true" || first.body != again.body {
		t.Errorf("%v %s", again.Header, again.body)
	}
	s.do("POST", "/v1/au/sizer", "another", "Idempotency-Key: k").wants(t, 422)
	s.do("POST", "/v1/au/sizer?prompt=x", "text", "Idempotency-Key: k").wants(t, 422)
	s.spoolIsEmpty(t)
}

func TestAnAgenticUnitThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	for _, wait := range []string{"0s", "10ms"} {
		a := s.do("POST", "/v1/au/sizer?arg=--do=wait&wait="+wait, "text").wants(t, 202)
		record := decode[api.Record](t, a)
		if record.ID != a.Header.Get("AOD-Run") || record.Outcome != "" {
			t.Errorf("%s", a.body)
		}
		s.do("POST", "/v1/runs/"+record.ID+"/cancel", "").wants(t, 202)
	}
}

func TestTheRunOfAClientThatHasGoneGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	ctx, cancel := contextWithCancel(t)
	gone := make(chan error)
	go func() {
		response, err := http.DefaultClient.Do(s.request("POST", "/v1/au/sizer?arg=--do=wait", "text", "Idempotency-Key: k").WithContext(ctx))
		if err == nil {
			response.Body.Close()
		}
		gone <- err
	}()
	var id string
	s.until(func() bool {
		page := decode[api.Page](t, s.do("GET", "/v1/runs?state=running", "").wants(t, 200))
		if len(page.Runs) == 1 {
			id = page.Runs[0].ID
		}
		return id != ""
	})
	cancel()
	if err := <-gone; err == nil {
		t.Error("it was answered")
	}
	s.until(func() bool { return strings.Contains(s.log.String(), `"route":"/v1/au/:name"`) })
	joined := s.do("POST", "/v1/au/sizer?arg=--do=wait&wait=10ms", "text", "Idempotency-Key: k").wants(t, 202)
	if record := decode[api.Record](t, joined); record.ID != id || record.State != api.Running {
		t.Errorf("%s", joined.body)
	}
	s.do("POST", "/v1/runs/"+id+"/cancel", "").wants(t, 202)
	a := s.do("POST", "/v1/au/sizer?arg=--do=wait", "text", "Idempotency-Key: k").wants(t, 499)
	if p := decode[httpwire.Problem](t, a); p.Code != "cancelled" || p.Run != id {
		t.Errorf("%s", a.body)
	}
}

func TestTheCardOfAUnit(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	if a := s.do("GET", "/v1/units/sizer/card", "").wants(t, 200); a.body != sizerCard {
		t.Errorf("%s", a.body)
	}
	s.do("GET", "/v1/units/actor/card", "").wants(t, 422)
	s.do("GET", "/v1/units/nobody/card", "").wants(t, 404)
}

// Whatever an address holds, a unit gets exactly that, or nothing is asked of it.
func FuzzAUAsk(f *testing.F) {
	for _, query := range []string{"", "prompt=a+b&arg=--do&arg=x%26y", "arg=&arg=", "wait=0s", "prompt=%ff", "arg=%00", "wait=9m", "timeout=1s;", "prompt=a&prompt=b"} {
		f.Add(query)
	}
	fuzzbound.Run(f, func(t *testing.T, query string) {
		r := request("POST", "/v1/au/sizer", "")
		r.URL.RawQuery = query
		asked, err := auAskOf(echo.New().NewContext(r, nil))
		if err != nil {
			if !fault.Is(err, fault.BadRequest) {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		var call capsule.AUCall
		must(t, json.Unmarshal(asked.input, &call))
		if q := r.URL.Query(); call.Prompt != q.Get("prompt") || !slices.Equal(call.Args, q["arg"]) {
			t.Errorf("%q: the unit would get %+v", query, call)
		}
	})
}
