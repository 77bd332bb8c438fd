package httpapi

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
)

// listen begins an answer that lasts, with a token.
func (s *server) listen(path, token string) *http.Response {
	s.t.Helper()
	resp, err := client.Do(s.request("GET", path, "", "Authorization: Bearer "+token))
	must(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	return resp
}

// chatter says something to a run every few milliseconds, until stop is called.
func (s *server) chatter(id string) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		clock := time.NewTicker(3 * time.Millisecond)
		defer clock.Stop()
		for {
			select {
			case <-over:
				return
			case <-clock.C:
				_, _ = messageHandlers{s.svc}.feature().SayOnce(trusted.Context(s.t), id, "", api.MessageEvent{Parts: []api.Part{{Text: "go on"}}}, nil) // a run hears 1,000 of them
			}
		}
	}()
	return func() { close(over); <-ended }
}

// A stream with much to tell ends as one does that is silent, and so does whoever waits.
func TestWhatIsOpenEndsWithItsToken(t *testing.T) {
	t.Parallel()
	tokens := access.NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	s := newServer(t, func(o *Options) { o.Tokens = tokens })
	revoked, err := tokens.Add(access.Grant{Name: "ci", Scopes: []access.Scope{access.Read, access.Run}})
	must(t, err)
	kept, err := tokens.Add(access.Grant{Name: "ops", Scopes: []access.Scope{access.Read}})
	must(t, err)
	busy, quiet := s.begin(), s.begin()
	defer s.chatter(busy)()
	open := map[string]*http.Response{}
	for name, path := range map[string]string{"busy": busy + "/events", "quiet": quiet + "/events", "log": quiet + "/logs?follow=true"} {
		open[name] = s.listen("/v1/runs/"+path, revoked)
	}
	other := s.listen("/v1/runs/"+quiet+"/events", kept)
	waits := make(chan answer, 1)
	go func() {
		waits <- s.do("POST", "/v1/runs?wait=3m", `{"unit":"actor","input":{"do":"wait"}}`, "Authorization: Bearer "+revoked)
	}()
	s.until(func() bool {
		return len(decode[api.Page](t, s.do("GET", "/v1/runs?active=true", "").wants(t, 200)).Runs) == 3
	})
	must(t, tokens.Remove("ci"))
	began := time.Now()
	for name, resp := range open {
		body, err := io.ReadAll(resp.Body)
		said := strings.Contains(string(body), "\n: the token is not this server's, or was revoked\n")
		if cut := errors.Is(err, io.ErrUnexpectedEOF); said == (name == "log") || cut != (name == "log") {
			t.Errorf("%s: it ended with %v, and %q", name, err, body[max(0, len(body)-200):])
		}
	}
	if a := <-waits; a.StatusCode != http.StatusAccepted {
		t.Errorf("who waits is told %d %s", a.StatusCode, a.body)
	}
	if took := time.Since(began); took > 10*grantLook {
		t.Errorf("they ended after %v", took)
	}
	s.until(func() bool { return strings.Count(s.log.String(), `"msg":"request ended before its time"`) == 4 })
	_, err = s.svc.Cancel(trusted.Context(t), quiet, "enough")
	must(t, err)
	if body, err := io.ReadAll(other.Body); err != nil || !strings.Contains(string(body), "event: end") {
		t.Errorf("the stream of another token: %v, %s", err, body)
	}
}
