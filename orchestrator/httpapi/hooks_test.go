package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// signedAt are the headers of a message.
func signedAt(t *testing.T, id string, at time.Time, body string) []string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	must(t, err)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return []string{
		"Authorization: -", "webhook-id: " + id, fmt.Sprintf("webhook-timestamp: %d", at.Unix()),
		"webhook-signature: v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}

func TestAHookStartsARun(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) {
		o.PayloadBytes = 2000
		key := func() (webhooks.Key, error) { return webhooks.ParseSecret(hookSecret) }
		hooks := map[string]Hook{
			"deploy": {Unit: "actor", Team: "ops", Key: key},
			"lost":   {Unit: "actor", Team: "ops", Key: func() (webhooks.Key, error) { return webhooks.Key{}, fault.New(fault.NotFound, "canary") }},
			"gone":   {Unit: "nothing", Team: "ops", Key: key},
		}
		o.Hooks = func(name string) (Hook, bool) { hook, ok := hooks[name]; return hook, ok }
	})
	const body = `{"do":"files"}`
	now := time.Now()
	post := func(name, body string, headers []string) answer {
		return s.do("POST", "/v1/hooks/"+name, body, headers...)
	}
	first := post("deploy", body, signedAt(t, "msg_1", now, body)).wants(t, 202)
	again := post("deploy", body, signedAt(t, "msg_1", now.Add(time.Minute), body)).wants(t, 202)
	if first.body != again.body || again.Header.Get("Idempotent-Replayed") != "true" || first.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%s, again %s %v", first.body, again.body, again.Header)
	}
	id := decode[struct{ Run string }](t, first).Run
	record := decode[api.Record](t, s.do("GET", "/v1/runs/"+id+"?wait=3m", "").wants(t, 200))
	if record.By != "hook:deploy" || record.Owner == nil || *record.Owner != (api.Owner{Team: "ops", Identity: "hook:deploy"}) || record.Outcome != api.Success {
		t.Errorf("%+v", record)
	}
	audit := s.do("GET", "/v1/audit?object="+id, "").wants(t, 200)
	if !strings.Contains(audit.body, `"identity":"hook:deploy"`) {
		t.Error(audit.body)
	}
	other := `{"do":"fail"}`
	post("deploy", other, signedAt(t, "msg_1", now, other)).wants(t, 422)
	large := `{"do":"` + strings.Repeat("x", 3000) + `"}`
	post("deploy", large, signedAt(t, "msg_2", now, large)).wants(t, 413)
	post("nobody", large, nil).wants(t, 413)
	post("deploy", `[]`, signedAt(t, "msg_3", now, `[]`)).wants(t, 400)
	post("gone", body, signedAt(t, "msg_4", now, body)).wants(t, 404)
	post("deploy", `{"do":7}`, signedAt(t, "msg_5", now, `{"do":7}`)).wants(t, 422)

	want := post("nobody", body, nil).wants(t, 401).body
	if strings.Contains(want, "nobody") {
		t.Error(want)
	}
	for what, answer := range map[string]answer{
		"no signature":           post("deploy", body, []string{"Authorization: -"}),
		"another body":           post("deploy", body, signedAt(t, "msg_6", now, body+" ")),
		"too old":                post("deploy", body, signedAt(t, "msg_6", now.Add(-6*time.Minute), body)),
		"too new":                post("deploy", body, signedAt(t, "msg_6", now.Add(6*time.Minute), body)),
		"a hook that isn't":      post("other", body, signedAt(t, "msg_6", now, body)),
		"one without its secret": post("lost", body, signedAt(t, "msg_6", now, body)),
		"the server's token":     post("deploy", body, nil),
		"a strange name":         post("%2e%2e", body, nil),
	} {
		if answer.StatusCode != 401 || answer.body != want {
			t.Errorf("%s: %d %s", what, answer.StatusCode, answer.body)
		}
	}
	if log := s.log.String(); strings.Contains(log, hookSecret[6:]) || !strings.Contains(log, "the secret of a hook can't be read") {
		t.Error("the log has the secret, or nothing of the one that is lost")
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs?made_by=hook:deploy", "").wants(t, 200)); len(page.Runs) != 1 {
		t.Errorf("its runs: %+v", page)
	}
}
