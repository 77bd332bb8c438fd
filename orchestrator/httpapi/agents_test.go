package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/check"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// asks is a request of the contract, with further members after the inputs.
func asks(taskType, inputs string, more ...string) string {
	return fmt.Sprintf(`{"request_id":"r-1","task_type":%q,"inputs":%s%s}`, taskType, inputs, strings.Join(more, ""))
}

// callAPI is a client of a fake container's capsule API.
func callAPI(dirs map[string]string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		dir, err := os.Open(dirs["/run/aod"]) // its path is too long for an address here
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/aod.sock", dir.Fd()))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// show is a program that shows artifacts of a MiB each, as many as it is told.
func (s *server) show(ctx context.Context, dirs map[string]string, many string) int {
	body := `{"id":"a","append":true,"text":"` + strings.Repeat("x", 1<<20-100) + `"}`
	n, _ := strconv.Atoi(many)
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://aod/artifact", strings.NewReader(body))
		if err != nil {
			return 98
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := callAPI(dirs).Do(r)
		if err != nil || resp.StatusCode != http.StatusNoContent {
			return 99
		}
		resp.Body.Close()
	}
	return 0
}

// tell is a program that tells how far it is, over the socket of its sandbox, and goes on
// until release.
func (s *server) tell(ctx context.Context, dirs map[string]string) int {
	api := callAPI(dirs)
	for _, body := range []string{`{"percent":50,"step":"complete","message":"half\nway"}`, `{"step":"final"}`} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://aod/progress", strings.NewReader(body))
		if err != nil {
			return 98
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := api.Do(r)
		if err != nil {
			return 99
		}
		resp.Body.Close()
	}
	select {
	case <-s.release:
	case <-ctx.Done():
	case <-enginetest.Terminated(ctx):
		return 143
	}
	_ = os.WriteFile(filepath.Join(dirs["/io"], "output.json"), []byte(`{"n":2}`), 0o600)
	return 0
}

// addUnit gives the server another capsule that does as the actor does.
func (s *server) addUnit(name string) {
	for file, content := range unitFiles {
		write(s.t, filepath.Join(s.sources, name, file), strings.ReplaceAll(content, "name: actor", "name: "+name))
	}
}

// refusedWith fails the test unless the answer is a refusal of the contract.
func (a answer) refusedWith(t testing.TB, status int, code string) agents.Failed {
	t.Helper()
	r := decode[agents.Failed](t, a)
	if a.StatusCode != status || r.Error.Code != code || r.OK || r.Status != agents.StatusFailed || string(r.Outputs) != "{}" || len(r.Warnings) == 0 {
		t.Errorf("status %d, want %d %s: %s", a.StatusCode, status, code, a.body)
	}
	return r
}

func TestOurOwnAgentsKeepTheContract(t *testing.T) {
	t.Parallel()
	s := newServerWith(t, agents.Policy{Refuse200: map[string]bool{"other": true}}, nil)
	s.addUnit("csv-report")
	s.addUnit("other")
	opts := check.Options{Call: agenthttp.Options{Token: token}}
	for _, target := range []check.Target{
		{URL: s.url, TaskType: "CSV_REPORT"},
		{URL: s.url, TaskType: "actor"},
		{URL: s.url, TaskType: "other"},
	} {
		report, err := check.Agent(trusted.Context(t), target, opts)
		must(t, err)
		for _, c := range report.Checks {
			clocked := c.ID == "stream-unbuffered" // it applies only to runs of a second or more, and this one takes none
			if c.Verdict != check.Pass && !clocked {
				t.Errorf("%s %s: %s %s: %s", target.URL, target.TaskType, c.ID, c.Verdict, c.Why)
			}
		}
	}
}

func TestInputsMayBeRefusedWith200(t *testing.T) {
	t.Parallel()
	s := newServerWith(t, agents.Policy{Refuse200: map[string]bool{"other": true}}, nil)
	s.addUnit("other")
	s.do("POST", "/agents/run/sync", asks("actor", `{"do":7}`)).refusedWith(t, 422, "invalid_input")
	s.do("POST", "/agents/run/sync", asks("other", `{"do":7}`)).refusedWith(t, 200, "VALIDATION_ERROR")
	last := terminalOf[agents.Failed](t, s.stream(asks("other", `{"do":7}`)))
	if last.Error.Code != "VALIDATION_ERROR" || len(last.Error.Findings) == 0 {
		t.Errorf("%+v", last)
	}
	s.do("POST", "/agents/run/sync", asks("other", `{}`)).wants(t, 200)
}

func TestATaskIsAnsweredWithAllThatIsKnown(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/agents/run/sync", asks("ACTOR", `{"do":"files"}`, `,"mode":null,"budgets":{"max_tokens":5},"stray":1`)).wants(t, 200)
	got := decode[agenthttp.Response](t, a)
	run := decode[api.Record](t, s.do("GET", "/v1/runs/"+a.Header.Get(auHeader), "").wants(t, 200))
	want := agenthttp.Response{
		RequestID: "r-1", TaskType: "ACTOR", Status: "ok", OK: true,
		Outputs: agenthttp.Object(run.Output), Artifacts: got.Artifacts, ArtifactDetails: got.ArtifactDetails,
		Provenance: jsonOf(agents.Provenance{Unit: "actor", Version: run.Version, Contract: contractOf(s, "actor"), Image: run.Image.ID, RunID: run.ID}),
		Warnings:   []string{"budgets has limits that this server does not apply: it knows timeout_ms, timeout_s, timeout_seconds and max_seconds"},
	}
	if run.Usage != nil {
		want.Usage = got.Usage
	}
	if diff := gocmp.Diff(want, got); diff != "" || len(got.Artifacts) != 3 || len(got.ArtifactDetails) != 3 || strings.Contains(a.body, "null") {
		t.Errorf("%s\n%s", diff, a.body)
	}
	for i, raw := range got.ArtifactDetails {
		var file agents.Artifact
		must(t, json.Unmarshal(raw, &file))
		if file.URL != got.Artifacts[i] {
			t.Errorf("artifact %d is %q, and its details are of %q", i, got.Artifacts[i], file.URL)
		}
		content := s.do("GET", file.URL, "").wants(t, 200).body
		if sum := sha256.Sum256([]byte(content)); hex.EncodeToString(sum[:]) != file.SHA256 || int64(len(content)) != file.Size {
			t.Errorf("%+v is %q", file, content)
		}
	}
}

func TestTasksThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.PayloadBytes = 1000 })
	s.addUnit("other")
	write(t, filepath.Join(s.sources, "broken", "agent.yaml"), "name: broken\n")
	cases := []struct {
		name, base, body string
		status           int
		code, header     string
		echoed           bool
	}{
		{"an unknown type", "/agents", asks("NOBODY", `{}`), 404, "not_found", "", true},
		{"a type that can't be a name", "/agents", asks("../../x", `{}`), 404, "not_found", "", true},
		{"the type of another unit", "/agents/actor", asks("OTHER", `{}`), 404, "not_found", "", true},
		{"a unit that isn't there", "/agents/nobody", asks("nobody", `{}`), 404, "not_found", "", true},
		{"a unit that is broken", "/agents", asks("BROKEN", `{}`), 422, "invalid_capsule", "", true},
		{"no id", "/agents", `{"task_type":"actor"}`, 422, "invalid_input", "", false},
		{"no type", "/agents", `{"request_id":"r-1"}`, 422, "invalid_input", "", true},
		{"an id that is too long", "/agents", `{"request_id":"` + strings.Repeat("r", 1025) + `","task_type":"actor"}`, 422, "invalid_input", "", false},
		{"no JSON", "/agents", `{"request_id":"r-1"`, 400, "bad_request", "", false},
		{"no JSON by its type", "/agents", asks("actor", `{}`), 400, "bad_request", "Content-Type: text/plain", false},
		{"inputs that break the unit's contract", "/agents", asks("actor", `{"do":7}`), 422, "invalid_input", "", true},
		{"inputs that name a file", "/agents", asks("actor", `{"doc":"x.txt"}`), 422, "invalid_input", "", true},
		{"inputs that are no object", "/agents", asks("actor", `[]`), 422, "invalid_input", "", true},
		{"a budget that is none", "/agents", asks("actor", `{}`, `,"budgets":{"timeout_ms":0}`), 422, "invalid_input", "", true},
		{"too much", "/agents", asks("actor", `{"say":"`+strings.Repeat("x", 20<<10)+`"}`), 413, "too_large", "", false},
		{"a word of ours that we don't know", "/agents", asks("actor", `{}`), 400, "bad_request", agents.DisconnectHeader + ": perhaps", true},
		{"no token", "/agents", asks("actor", `{}`), 401, "unauthorized", "Authorization: -", false},
	}
	for _, c := range cases {
		for _, way := range []string{"/run/sync", "/run/stream"} {
			t.Run(c.name+way, func(t *testing.T) {
				r := s.do("POST", c.base+way, c.body, cmp.Or(c.header, "X: y")).refusedWith(t, c.status, c.code)
				if echoed := r.RequestID == "r-1"; echoed != c.echoed || r.Provenance != nil {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func TestRunsThatFail(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, c := range []struct {
		inputs, more string
		status       int
		code         string
	}{
		{`{"do":"fail"}`, ``, 502, "unit_failed"},
		{`{"do":"wait"}`, `,"budgets":{"timeout_ms":20,"max_seconds":30}`, 504, "deadline"},
	} {
		refused := s.do("POST", "/agents/run/sync", asks("ACTOR", c.inputs, c.more)).refusedWith(t, c.status, c.code)
		events := s.stream(asks("ACTOR", c.inputs, c.more))
		last := terminalOf[agents.Failed](t, events)
		for _, r := range []agents.Failed{refused, last} {
			var from agents.Provenance
			must(t, json.Unmarshal(r.Provenance, &from))
			if r.RequestID != "r-1" || r.TaskType != "ACTOR" || r.Error.Code != c.code || from.Unit != "actor" || !httpwire.IsRunID(from.RunID) {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestReadinessInTheContractsWords(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	if a := s.do("GET", "/health/ready", "", "Authorization: -").wants(t, 200); a.body != `{"service":"aod","status":"ready"}`+"\n" {
		t.Error(a.body)
	}
	done, stop := contextWithCancel(t)
	stop()
	s.svc.Shutdown(done, false)
	if a := s.do("GET", "/health/ready", ""); a.StatusCode != 503 || a.body != `{"service":"aod","status":"degraded"}`+"\n" {
		t.Error(a.StatusCode, a.body)
	}
	s.do("POST", "/agents/run/sync", asks("ACTOR", `{}`)).refusedWith(t, 503, "unavailable")
}

// goOn lets a program that waits go on.
func (s *server) goOn() {
	s.t.Helper()
	select {
	case s.release <- struct{}{}:
	case <-time.After(testkit.Patience):
		s.t.Fatal("no program waits")
	}
}
