package httpapi

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

// canary stands wherever a person's data may stand in a request or in what a unit says.
const canary = "Tweety"

// sung is a request with what it has to be answered with: 0 is whatever that is.
type sung struct {
	why, body string
	status    int // of both ways; a run that fails is a stream with 200 and its failure
	headers   []string
}

// songs are requests with canaries in all places, by what becomes of them.
func songs() []sung {
	about := `,"user_id":"Tweety","mode":"Tweety","risk_tier":"Tweety","domain_id":"Tweety","workflow_id":"Tweety","stage_id":"Tweety"`
	long := canary + strings.Repeat("x", 200)
	return []sung{
		{"it is done", asks("ACTOR", `{"say":"Tweety","do":"Tweety"}`, about, `,"budgets":{"Tweety":"Tweety"},"Tweety":"Tweety"`), 200, nil},
		{"its trace id isn't an id", `{"request_id":"Tweety of a person","task_type":"ACTOR"}`, 200, nil},
		{"its program fails", asks("ACTOR", `{"say":"Tweety","do":"fail"}`, about), 502, nil},
		{"its program complains", asks("ACTOR", `{"say":"Tweety","do":"complain"}`, about), 502, nil},
		{"its result has a wrong type", asks("ACTOR", `{"say":"Tweety","do":"lie"}`), 502, nil},
		{"its result names a file that isn't there", asks("ACTOR", `{"say":"Tweety.txt","do":"lose"}`), 502, nil},
		{"its result names a file elsewhere", asks("ACTOR", `{"say":"../Tweety","do":"lose"}`), 502, nil},
		{"its time is up", asks("ACTOR", `{"say":"Tweety","do":"wait"}`, `,"budgets":{"timeout_ms":20}`), 504, nil},
		{"its filter fails", asks("SIZER", `{"prompt":"Tweety","args":["--do=fail"]}`), 502, nil},
		{"its filter prints no JSON", asks("SIZER", `{"prompt":"Tweety","args":["--do=chat"]}`), 502, nil},
		{"its filter has no such flag", asks("SIZER", `{"prompt":"Tweety","args":["--Tweety"]}`), 422, nil},

		{"a wrong type", asks("ACTOR", `{"say":["Tweety"]}`), 422, nil},
		{"an unknown field", asks("ACTOR", `{"Tweety":"Tweety"}`), 422, nil},
		{"a file", asks("ACTOR", `{"doc":"Tweety.txt"}`), 422, nil},
		{"a file elsewhere", asks("ACTOR", `{"docs":["a.txt","../Tweety"]}`), 422, nil},
		{"a field twice", asks("ACTOR", `{"say":"Tweety","say":"Tweety"}`), 0, nil},
		{"an unknown field twice", asks("ACTOR", `{"Tweety":"Tweety","Tweety":"Tweety"}`), 422, nil},
		{"a broken field", asks("ACTOR", `{"Tweety":{"Tweety":"\\ud800"}}`), 422, nil},
		{"inputs that are none", asks("ACTOR", `"Tweety"`), 422, nil},
		{"a number that is too large", asks("ACTOR", `{"say":1e999999}`), 0, nil},
		{"no JSON", `{"request_id":"r-1","task_type":"ACTOR","inputs":{"say":"Tweety"}`, 400, nil},
		{"no UTF-8", asks("ACTOR", `{"say":"Tweety`+"\xff"+`"}`), 400, nil},
		{"no JSON by its name", asks("ACTOR", `{"say":"Tweety"}`), 400, []string{"Content-Type: text/Tweety"}},
		{"too much", asks("ACTOR", `{"say":"`+strings.Repeat(canary, 10_000)+`"}`), 413, nil},
		{"an input that is too large", asks("ACTOR", `{"say":"`+strings.Repeat(canary, 250)+`"}`), 0, nil},
		{"a long trace id", `{"request_id":"` + long + long + long + long + long + long + `","task_type":"ACTOR"}`, 422, nil},
		{"a trace id that isn't text", `{"request_id":["Tweety"],"task_type":"ACTOR"}`, 422, nil},
		{"a type that nobody knows", asks(canary, `{"Tweety":"Tweety"}`), 404, nil},
		{"a type that can't be a name", asks("../"+canary, `{}`), 404, nil},
		{"a long user", asks("ACTOR", `{}`, `,"user_id":"`+long+`"`), 422, nil},
		{"a user with a line end", asks("ACTOR", `{}`, `,"user_id":"Tweety\n"`), 422, nil},
		{"a user that isn't text", asks("ACTOR", `{}`, `,"user_id":{"Tweety":"Tweety"}`), 422, nil},
		{"a budget that is none", asks("ACTOR", `{}`, `,"budgets":{"timeout_s":"Tweety"}`), 422, nil},
		{"a mode that isn't allowed", asks("CAREFUL", `{"say":"Tweety"}`, `,"mode":"Tweety","risk_tier":"LOW"`), 403, nil},
		{"a risk that isn't allowed", asks("CAREFUL", `{"say":"Tweety"}`, `,"risk_tier":"Tweety"`), 403, nil},
		{"a risk that isn't told", asks("CAREFUL", `{"say":"Tweety"}`, `,"user_id":"Tweety"`), 422, nil},
		{"a header that says nothing", asks("ACTOR", `{"say":"Tweety"}`), 400, []string{agents.DisconnectHeader + ": Tweety"}},
		{"a wrong token", asks("ACTOR", `{"say":"Tweety"}`), 401, []string{"Authorization: Bearer Tweety"}},
		{"a foreign host", asks("ACTOR", `{"say":"Tweety"}`), 403, []string{"Host: Tweety.example"}},
		{"a foreign page", asks("ACTOR", `{"say":"Tweety"}`), 403, []string{"Origin: https://Tweety.example"}},
	}
}

// aviary is a server with units for all songs, whose log has everything.
func aviary(t *testing.T) *server {
	policy := agents.Policy{Units: map[string]agents.Rules{"careful": {Modes: []string{"DEMO"}, RiskTiers: []string{"LOW"}}}}
	s := newServerWith(t, policy, func(o *Options) { o.PayloadBytes = 1000 })
	s.addSizer()
	s.addUnit("careful")
	return s
}

func TestNoCanarySingsInALogOrAnError(t *testing.T) {
	t.Parallel()
	s := aviary(t)
	for _, c := range songs() {
		for _, way := range []string{"sync", "stream"} {
			t.Run(c.why+" "+way, func(t *testing.T) { s.sing(t, way, c) })
		}
	}
	for _, base := range []string{"/agents/Tweety", "/agents/actor/Tweety", "/Tweety"} {
		if a := s.do("POST", base+"/run/sync", asks("ACTOR", `{}`)); a.StatusCode != 404 || sings(a.body) {
			t.Errorf("%s: %d %s", base, a.StatusCode, a.body)
		}
	}
	s.silent(t)
	if text := s.log.String(); !strings.Contains(text, `"request_id":"r-1","task_type":"ACTOR"`) || !strings.Contains(text, `"route":"/agents/run/stream"`) {
		t.Errorf("the log says nothing: %s", text)
	}
}

func (s *server) sing(t *testing.T, way string, c sung) {
	a := s.do("POST", "/agents/run/"+way, c.body, c.headers...)
	status, failure := a.StatusCode, a.body
	if way == "stream" && status == 200 {
		last := terminalOf[agents.Failed](t, messagesOf(t, strings.NewReader(a.body)))
		failure = string(jsonOf(last))
		if !last.OK {
			status = map[string]int{"unit_failed": 502, "deadline": 504, "invalid_input": 422}[last.Error.Code]
		}
		for _, m := range messagesOf(t, strings.NewReader(a.body)) {
			if m.Name != "final" && sings(m.Data) && !strings.Contains(c.why, "trace id") {
				t.Errorf("an event: %+v", m)
			}
		}
	}
	if c.status != 0 && status != c.status || status == 500 {
		t.Errorf("status %d, want %d: %s", status, c.status, failure)
	}
	if status != 200 && sings(failure) {
		t.Errorf("it is answered with %s", failure)
	}
}

func sings(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(canary)) }

// silent fails the test when the log or the metrics have a canary, or the token.
func (s *server) silent(t *testing.T) {
	t.Helper()
	metrics := s.do("GET", "/metrics", "").wants(t, 200).body
	for line := range strings.Lines(s.log.String() + metrics) {
		if sings(line) || strings.Contains(line, token) {
			t.Errorf("it sings: %s", line)
		}
	}
}

func TestNoCanarySingsOfATaskThatIsEnded(t *testing.T) {
	t.Parallel()
	about := asks("ACTOR", `{"do":"wait","say":"Tweety"}`, `,"user_id":"Tweety"`)
	for _, way := range []string{"sync", "stream"} {
		for _, end := range []string{"cancel", "leave", "stop"} {
			t.Run(way+" "+end, func(t *testing.T) {
				s := aviary(t)
				ctx, leave := contextWithCancel(t)
				answered := make(chan string, 1)
				go func() {
					resp, err := client.Do(s.request("POST", "/agents/run/"+way, about).WithContext(ctx))
					if err != nil {
						answered <- ""
						return
					}
					defer resp.Body.Close()
					raw, _ := io.ReadAll(resp.Body)
					answered <- string(raw)
				}()
				id := s.running(t)
				switch end {
				case "cancel":
					s.do("POST", "/v1/runs/"+id+"/cancel", `{"reason":"Tweety"}`).wants(t, 202)
				case "leave":
					leave()
				case "stop":
					s.stop()
				}
				if body := <-answered; sings(body) || end != "leave" && !strings.Contains(body, `"ok":false`) {
					t.Errorf("it is answered with %s", body)
				}
				if end == "stop" {
					if sings(s.log.String()) {
						t.Errorf("logged: %s", s.log)
					}
					return
				}
				s.until(func() bool {
					return decode[api.Record](t, s.do("GET", "/v1/runs/"+id, "").wants(t, 200)).Outcome == api.WasCancelled
				})
				s.silent(t)
			})
		}
	}
}

// running waits for the one run that there is to run.
func (s *server) running(t *testing.T) (id string) {
	t.Helper()
	s.until(func() bool {
		ids := s.listed("state=running")
		if len(ids) == 1 {
			id = ids[0]
		}
		return id != ""
	})
	return id
}

func TestNoCanarySingsOfAPanic(t *testing.T) {
	t.Parallel()
	s := aviary(t)
	for _, way := range []string{"sync", "stream"} {
		w := &tripwire{ResponseRecorder: httptest.NewRecorder(), at: "r-1"}
		func() {
			defer func() { _ = recover() }() // as net/http does: the connection of an answer that broke is cut
			s.api.Handler().ServeHTTP(w, s.request("POST", "/agents/run/"+way, asks("ACTOR", `{"say":"Tweety"}`, `,"user_id":"Tweety"`)))
		}()
		if !w.tripped || sings(w.Body.String()) {
			t.Errorf("%s: %v, it is answered with %s", way, w.tripped, w.Body)
		}
	}
	s.silent(t)
}

func TestNoCanarySingsOfASearch(t *testing.T) {
	t.Parallel()
	s := aviary(t)
	for path, body := range map[string]string{
		"/v1/runs?metadata=Tweety:Tweety": "", "/v1/runs?metadata=a:Tweety%07": "", "/v1/runs?metadata=Tweety": "",
		"/v1/runs?metadata=a:Tweety&metadata=a:canary": "", "/v1/runs?Tweety=Tweety": "", "/v1/runs?state=Tweety": "",
		"/v1/runs?metadata=user_id:Tweety": "",
		"/v1/runs":                         `{"unit":"actor","metadata":{"a":"Tweety\n"}}`,
		"/v1/runs?wait=10s":                `{"unit":"actor","input":{"say":"Tweety"},"metadata":{"a":"Tweety"}}`,
		"/v1/runs?wait=1s":                 `{"unit":"actor","metadata":{"Tweety":"Tweety"}}`,
		"/v1/runs?wait=2s":                 `{"unit":"actor","metadata":"Tweety"}`,
	} {
		method := map[bool]string{true: "GET", false: "POST"}[body == ""]
		if a := s.do(method, path, body); a.StatusCode >= 400 && sings(a.body) {
			t.Errorf("%s is answered with %s", path, a.body)
		}
	}
	s.silent(t)
}
