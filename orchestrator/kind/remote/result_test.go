package remote

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
)

const refusal = `{"request_id":"$ID","ok":false,"outputs":{},"warnings":["in its words"]}`

func TestHowAnAnswerEndsItsRun(t *testing.T) {
	a := newAgent(t, nil, (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	for _, c := range []struct {
		name     string
		says     answer
		outcome  api.Outcome
		category api.Category
		kind     string
		message  string
	}{
		{"a success", says(200, good), api.Success, "", "", ""},
		{"a success in the other style", says(200, `{"request_id":"$ID","ok":true,"outputs":{"words":3}}`), api.Success, "", "", ""},
		{"a success with another code of success", says(201, good), api.Success, "", "", ""},
		{"a success that says of another type that it is JSON", with("Content-Type", "text/html", says(200, good)), api.Success, "", "", ""},
		{"a failure", says(200, `{"request_id":"$ID","ok":false,"error":{"message":"no table"}}`), api.RemoteError, api.CategoryAgent, "remote_error", "failed; in its own words: no table"},
		{"a failure without a reason", says(200, `{"request_id":"$ID","ok":false}`), api.RemoteError, api.CategoryAgent, "remote_error", "the agent says that it failed"},
		{"nothing", says(200, ``), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"no content", says(204, ``), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"a page", says(200, `<html>`), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"a list", says(200, `[`+good+`]`), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"two answers", says(200, good+good), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"half an answer", says(200, good[:40]), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-json)"},
		{"one for somebody else", says(200, strings.Replace(good, "$ID", "other", 1)), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule sync-request-id)"},
		{"success and failure at once", says(200, strings.Replace(good, `"status"`, `"ok":false,"status"`, 1)), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule "},
		{"outputs without what the contract wants", says(200, `{"request_id":"$ID","status":"ok","outputs":{}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "the agent's outputs break the contract"},
		{"outputs of another type", says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":"x"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract at /words"},
		{"a tower", says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":3,"a":`+strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)+`}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", ""},
		{"more outputs than a unit may give", says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":3,"a":"`+strings.Repeat("x", 1<<20)+`"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract"},
		{"more than is read", says(200, `{"request_id":"$ID","status":"ok","outputs":{"words":3,"a":"`+strings.Repeat("x", 3<<20)+`"}}`), api.ContractViolation, api.CategoryAgent, "contract_violation", "more than is taken"},
		{"more than is read, packed", packed(`{"a":"` + strings.Repeat("x", 20<<20) + `"}`), api.ContractViolation, api.CategoryAgent, "contract_violation", ""},
		{"a cut in its head", func(http.ResponseWriter, *http.Request, agenthttp.Request) { panic(http.ErrAbortHandler) }, api.SystemError, api.CategoryTransient, "unavailable", "does not answer"},
		{"a cut in its body", cutOff(good[:30]), api.SystemError, api.CategoryTransient, "unavailable", "broke off"},
		{"a head without an end", func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
			says(200, good)(w, r, asked)
		}, api.SystemError, api.CategoryTransient, "unavailable", "does not answer"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request, _ agenthttp.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprint(conn, "SSH-2.0-secret\r\n")
				conn.Close()
			}
		}, api.SystemError, api.CategoryTransient, "unavailable", "does not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.answers(c.says)
			before := a.requests()
			got, x := b.ends()
			wants(t, got, c.outcome, c.category, c.kind, c.message)
			if n := a.requests() - before; n != 1 {
				t.Errorf("it was asked %d times", n)
			}
			if x.State() != api.Running || x.Record.StartedAt == nil {
				t.Errorf("it is %s since %v", x.State(), x.Record.StartedAt)
			}
			if strings.Contains(told(got, x), "SSH-2.0") {
				t.Errorf("it shows what came: %s", told(got, x))
			}
		})
	}
}

// packed is an answer that is much larger than what goes over the wire.
func packed(text string) answer {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return with("Content-Encoding", "gzip", says(200, small.String()))
}

func TestWhatAStatusMeans(t *testing.T) {
	a := newAgent(t, nil, (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	type meaning struct {
		outcome  api.Outcome
		category api.Category
		kind     string
	}
	refused := meaning{api.RemoteError, api.CategoryPermanent, "remote_refused"}
	busy := meaning{api.RemoteError, api.CategoryTransient, "remote_busy"}
	failed := meaning{api.RemoteError, api.CategoryAgent, "remote_error"}
	gateway := meaning{api.SystemError, api.CategoryTransient, "unavailable"}
	for status, c := range map[int]struct{ bare, shaped meaning }{
		300: {refused, refused}, 304: {refused, refused}, 400: {refused, refused}, 401: {refused, refused}, 403: {refused, refused}, 404: {refused, refused},
		408: {refused, refused}, 409: {refused, refused}, 413: {refused, refused}, 418: {refused, refused}, 422: {refused, refused}, 499: {refused, refused},
		429: {busy, busy}, 503: {busy, busy}, 501: {refused, refused},
		500: {failed, failed}, 505: {failed, failed}, 599: {failed, failed},
		502: {gateway, failed}, 504: {gateway, failed},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a.answers(with("Retry-After", "3600", says(status, `nobody shows this`)))
			got, x := b.ends()
			wants(t, got, c.bare.outcome, c.bare.category, c.bare.kind, fmt.Sprintf("answers %d", status))
			if text := told(got, x); strings.Contains(text, "nobody shows") || got.Failure.Hint == "" {
				t.Errorf("the user is told %s", text)
			}
			if status == http.StatusNotModified { // it has no body
				return
			}
			a.answers(says(status, refusal))
			got, _ = b.ends()
			wants(t, got, c.shaped.outcome, c.shaped.category, c.shaped.kind, "in its words")
			a.answers(says(status, strings.Replace(refusal, "$ID", "other", 1)))
			got, x = b.ends()
			wants(t, got, c.bare.outcome, c.bare.category, c.bare.kind, "")
			if strings.Contains(told(got, x), "in its words") {
				t.Error("it shows the words of an answer to somebody else")
			}
		})
	}
}

func TestHowAStreamEndsItsRun(t *testing.T) {
	a := newAgent(t, nil, (*httptest.Server).Start)
	b := newBench(t, a.URL, "  stream: true\n")
	const final, beat = "event: final\ndata: " + good + "\n\n", "event: progress\ndata: {\"percent\":50}\n\n"
	events := func(text string) answer { return with("Content-Type", "text/event-stream", says(200, text)) }
	for _, c := range []struct {
		name     string
		says     answer
		outcome  api.Outcome
		category api.Category
		kind     string
		message  string
	}{
		{"well", events(beat + ": alive\n\n" + beat + final), api.Success, "", "", ""},
		{"well, though it breaks after its end", with("Content-Type", "text/event-stream", cutOff(final)), api.Success, "", "", ""},
		{"with a failure", events(beat + "event: final\ndata: {\"request_id\":\"$ID\",\"ok\":false,\"error\":\"no table\",\"task_type\":\"WORDS\",\"status\":\"error\",\"outputs\":{}}\n\n"), api.RemoteError, api.CategoryAgent, "remote_error", "no table"},
		{"with a status", says(503, "x"), api.RemoteError, api.CategoryTransient, "remote_busy", "answers 503"},
		{"as one answer", says(200, good), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule stream-content-type)"},
		{"without an end", events(beat), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule stream-terminal)"},
		{"with half an end", events(beat + strings.TrimSuffix(final, "\n")), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule stream-terminal)"},
		{"with two ends", events(final + final), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule stream-single-terminal)"},
		{"with more behind its end", events(final + beat), api.ContractViolation, api.CategoryAgent, "contract_violation", "(rule stream-terminal-last)"},
		{"with a cut", with("Content-Type", "text/event-stream", cutOff(beat)), api.SystemError, api.CategoryTransient, "unavailable", "broke off"},
		{"with a line without an end", events("data: " + strings.Repeat("x", 3<<20)), api.ContractViolation, api.CategoryAgent, "contract_violation", ""},
		{"with outputs that break the contract", events(strings.Replace(final, `"words":3`, `"words":"x"`, 1)), api.ContractViolation, api.CategoryAgent, "contract_violation", "break the contract at /words"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.answers(c.says)
			got, _ := b.ends()
			wants(t, got, c.outcome, c.category, c.kind, c.message)
		})
	}
}

func TestRedirects(t *testing.T) {
	elsewhere := newAgent(t, says(200, good), (*httptest.Server).Start)
	a := newAgent(t, nil, (*httptest.Server).Start)
	b := newBench(t, a.URL, "  auth: {secret: token}\n")
	write(t, b.secrets+"/token", "s3cret")
	to := func(status int, where string) answer { return with("Location", where, says(status, "")) }
	once := func(first answer) answer {
		return func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
			if r.URL.Path == "/moved" {
				says(200, good)(w, r, asked)
				return
			}
			first(w, r, asked)
		}
	}
	for _, c := range []struct {
		name     string
		says     answer
		requests int
		outcome  api.Outcome
	}{
		{"within its origin", once(to(307, "/moved")), 2, api.Success},
		{"within its origin, for good", once(to(308, "/moved")), 2, api.Success},
		{"that would lose the request", once(to(303, "/moved")), 1, api.RemoteError},
		{"to another origin", once(to(307, elsewhere.URL)), 1, api.RemoteError},
		{"to no address", once(to(307, "http://%zz")), 1, api.SystemError},
		{"without an address", once(says(307, "")), 1, api.RemoteError},
		{"in a circle", to(307, "/round"), 4, api.RemoteError},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.answers(c.says)
			before := a.requests()
			got, _ := b.ends()
			if n := a.requests() - before; got.Outcome != c.outcome || n != c.requests {
				t.Errorf("%d requests: %+v %+v", n, got, got.Failure)
			}
			if asked, header := a.last(); c.requests > 1 && (string(asked.Inputs) != `{"text":"a b c"}` || header.Get("Authorization") != "Bearer s3cret") {
				t.Errorf("it was repeated as %+v with %v", asked, header)
			}
		})
	}
	if n := elsewhere.requests(); n > 0 {
		t.Errorf("the other origin was asked %d times", n)
	}
}
