package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// hookReceiver is a receiver of webhooks of the test's own, which answers with a status.
type hookReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	heard  []*http.Request
	bodies []string
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	h := &hookReceiver{status: 204}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.heard, h.bodies = append(h.heard, r), append(h.bodies, string(body))
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hookReceiver) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

// url is the receiver's address by a name that may be there.
func (h *hookReceiver) url() string {
	_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
	return "http://hook.example:" + port + "/in?canary"
}

// nth returns a request that was heard, and its body; nil before.
func (h *hookReceiver) nth(n int) (*http.Request, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n >= len(h.heard) {
		return nil, ""
	}
	return h.heard[n], h.bodies[n]
}

// verify is what a receiver does by the specification.
func verify(t *testing.T, secret string, r *http.Request, body string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	must(t, err)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); !slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), want) {
		t.Errorf("it is signed %q, want %s", r.Header.Get("webhook-signature"), want)
	}
}

func TestAWebhookOverHTTP(t *testing.T) {
	t.Parallel()
	s, h := newServer(t, nil), newHookReceiver(t)
	response := s.do("POST", "/v1/webhooks", `{"url":"`+h.url()+`","events":["run.failed","run.completed"]}`).wants(t, 201)
	made := decode[api.Webhook](t, response)
	to := "/v1/webhooks/" + made.ID
	if response.Header.Get("Location") != to || response.Header.Get("Cache-Control") != "no-store" || len(made.Secret) < 40 || made.State != api.WebhookActive {
		t.Errorf("made: %+v %v", made, response.Header)
	}
	if came := decode[api.WebhookTest](t, s.do("POST", to+"/test", "").wants(t, 200)); came.Outcome != "delivered" || came.Status != 204 {
		t.Errorf("the test: %+v", came)
	}
	r, body := h.nth(0)
	verify(t, made.Secret, r, body)
	if !strings.Contains(body, `{"type":"webhook.test","timestamp":"2`) {
		t.Error(body)
	}
	record := s.run(`{"do":"fail"}`)
	testkit.Eventually(t, "it hears of the run's end", func() bool { r, body = h.nth(1); return r != nil })
	verify(t, made.Secret, r, body)
	var told struct {
		Type string
		Data map[string]any
	}
	must(t, json.Unmarshal([]byte(body), &told))
	want := fmt.Sprint(map[string]any{"run": record.ID, "unit": "actor", "state": "failed", "outcome": string(record.Outcome), "owner": map[string]any{"team": "default"}, "path": "/v1/runs/" + record.ID})
	if told.Type != "run.failed" || fmt.Sprint(told.Data) != want || !strings.HasPrefix(r.Header.Get("webhook-id"), record.ID+"-") || r.Header.Get("content-type") != "application/json" {
		t.Errorf("%s, want %s: %v", body, want, r.Header)
	}
	got := decode[api.Webhook](t, s.do("GET", to, "").wants(t, 200))
	testkit.Eventually(t, "it is noted", func() bool {
		got = decode[api.Webhook](t, s.do("GET", to, "").wants(t, 200))
		return got.Deliveries.Delivered == 1
	})
	if got.Secret != "" || got.Outcome != "delivered" || got.Status != 204 || got.Deliveries.Waiting != 0 {
		t.Errorf("%+v", got)
	}
	page := decode[api.WebhookPage](t, s.do("GET", "/v1/webhooks?limit=1", "").wants(t, 200))
	if len(page.Webhooks) != 1 || page.Webhooks[0].ID != made.ID || page.Next == nil {
		t.Errorf("%+v", page)
	}
	if page := decode[api.WebhookPage](t, s.do("GET", fmt.Sprint("/v1/webhooks?cursor=", *page.Next), "").wants(t, 200)); len(page.Webhooks) != 0 || page.Next != nil {
		t.Errorf("%+v", page)
	}
	var did []string
	for _, row := range decode[api.AuditPage](t, s.do("GET", "/v1/audit?object="+made.ID, "").wants(t, 200)).Entries {
		did = append(did, row.Verb+" "+row.Noun)
	}
	if fmt.Sprint(did) != "[test webhook add webhook]" {
		t.Errorf("the audit has %q", did)
	}
	secrets, at := []string{made.Secret}, 2
	for _, c := range []struct {
		body    string
		signing int // secrets, the newest of them
	}{{"", 2}, {`{"grace":"0"}`, 1}, {`{"secret":"` + made.Secret + `","grace":"1m"}`, 2}} {
		answer := s.do("POST", to+"/rotate", c.body).wants(t, 200)
		secrets = append(secrets, decode[api.Webhook](t, answer).Secret)
		if answer.Header.Get("Cache-Control") != "no-store" {
			t.Error(answer.Header)
		}
		s.do("POST", to+"/test", "").wants(t, 200)
		r, body = h.nth(at)
		for _, secret := range secrets[len(secrets)-c.signing:] {
			verify(t, secret, r, body)
		}
		if at++; len(strings.Fields(r.Header.Get("webhook-signature"))) != c.signing {
			t.Errorf("%s: it is signed %q", c.body, r.Header.Get("webhook-signature"))
		}
	}
	for _, bad := range []string{`{"grace":"x"}`, `{"secret":"x"}`, `{"grace":"721h"}`} {
		s.do("POST", to+"/rotate", bad).wants(t, 422)
	}
	s.do("POST", to+"/rotate", `{"x":1}`).wants(t, 400)
	for _, row := range decode[api.AuditPage](t, s.do("GET", "/v1/audit?limit=2&object="+made.ID, "").wants(t, 200)).Entries {
		did = append(did, row.Verb)
	}
	if !strings.Contains(fmt.Sprint(did), "test rotate") {
		t.Errorf("the audit has %q", did)
	}
	s.do("DELETE", to, "").wants(t, 204)
	for _, method := range []string{"GET", "DELETE"} {
		s.do(method, to, "").wants(t, 404)
	}
	s.do("POST", to+"/test", "").wants(t, 404)
	s.do("POST", to+"/rotate", "").wants(t, 404)
	s.do("GET", "/v1/webhooks/x", "").wants(t, 404)
	if log := s.log.String(); strings.Contains(log, "canary") || slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(log, s[6:]) }) {
		t.Errorf("the log has what it should not:\n%s", log)
	}
}

func TestAWebhookThatFailsIsSeen(t *testing.T) {
	t.Parallel()
	s, h := newServer(t, nil), newHookReceiver(t)
	h.answers(302)
	made := decode[api.Webhook](t, s.do("POST", "/v1/webhooks", `{"url":"`+h.url()+`"}`).wants(t, 201))
	to := "/v1/webhooks/" + made.ID
	if came := decode[api.WebhookTest](t, s.do("POST", to+"/test", "").wants(t, 200)); came.Outcome != "refused" || came.Status != 302 {
		t.Errorf("the test: %+v", came)
	}
	s.run(`{"do":"files"}`)
	var got api.Webhook
	testkit.Eventually(t, "the event is lost", func() bool {
		got = decode[api.Webhook](t, s.do("GET", to, "").wants(t, 200))
		return got.Deliveries.Lost == 1
	})
	if got.State != api.WebhookFailing || got.Outcome != "refused" || got.Status != 302 || got.FailingSince == nil || got.GivenUpAt != nil {
		t.Errorf("%+v", got)
	}
	h.answers(410)
	s.run(`{"do":"files"}`)
	testkit.Eventually(t, "it is given up", func() bool {
		got = decode[api.Webhook](t, s.do("GET", to, "").wants(t, 200))
		return got.State == api.WebhookGivenUp
	})
	if got.Reason != api.PushGone || got.GivenUpAt == nil || got.Deliveries.Lost != 2 {
		t.Errorf("%+v", got)
	}
}

func TestWhichWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.run(`{"do":"files"}`).ID
	const good = `"url":"http://hook.example:9/in"`
	for body, c := range map[string]struct {
		status int
		want   string
	}{
		`{}`:                                                          {422, "it is missing (webhook_url)"},
		`{"url":"http://canary.example/"}`:                            {422, "only https is spoken to this host (webhook_https)"},
		`{"url":"https://127.0.0.1/canary"}`:                          {422, "no public address of its host is known (webhook_private)"},
		`{"url":"https://[::1]/canary"}`:                              {422, "webhooks.private"},
		`{"url":"https://169.254.169.254/"}`:                          {422, "webhook_private"},
		`{` + good + `,"secret":"canary"}`:                            {422, "whsec_ and base64 of 24 to 64 bytes"},
		`{` + good + `,"secret":"whsec_YQ=="}`:                        {422, "whsec_ and base64"},
		`{` + good + `,"events":["canary"]}`:                          {422, "run.completed, run.failed"},
		`{` + good + `,"run":"01a1feaa-035d-7ae0-9d97-1e84e60a433a"}`: {404, "no run"},
		`{` + good + `,"run":"` + id + `"}`:                           {409, "the run has ended"},
		`{` + good + `,"more":1}`:                                     {400, "not known"},
		`[]`:                                                          {400, ""},
	} {
		answer := s.do("POST", "/v1/webhooks", body).wants(t, c.status)
		if !strings.Contains(answer.body, c.want) || strings.Contains(answer.body, "/canary") {
			t.Errorf("%s: %s", body, answer.body)
		}
	}
	if page := decode[api.WebhookPage](t, s.do("GET", "/v1/webhooks", "").wants(t, 200)); len(page.Webhooks) != 0 {
		t.Errorf("%+v", page)
	}
}
