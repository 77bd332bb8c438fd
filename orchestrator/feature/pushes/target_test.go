package pushes

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func doorForTests() *egress.Door {
	known := map[string][]string{"good.example": {"198.41.0.4"}, "canary-private.example": {"10.9.8.7"}, "canary-mapped.example": {"::ffff:10.9.8.7"}}
	return egress.New(egress.Options{Resolver: &resolver{known: known}, Private: near("near.example")})
}

func TestAReceiverIsTaken(t *testing.T) {
	for _, c := range []struct {
		config api.PushConfig
		want   Target
	}{
		{api.PushConfig{URL: "https://good.example/a?b=c"}, Target{URL: "https://good.example/a?b=c", Host: "good.example"}},
		{api.PushConfig{ID: "x", URL: "https://GOOD.example.:8443", Token: "t"}, Target{URL: "https://GOOD.example.:8443", Host: "good.example", Token: "t"}},
		{api.PushConfig{URL: "http://near.example/", Scheme: "bearer", Credentials: "c"}, Target{URL: "http://near.example/", Host: "near.example", Scheme: "Bearer", Credentials: "c"}},
		{api.PushConfig{URL: "https://later.example/", Scheme: "BASIC", Credentials: "YTpi"}, Target{URL: "https://later.example/", Host: "later.example", Scheme: "Basic", Credentials: "YTpi"}},
		{api.PushConfig{URL: "https://198.41.0.4/"}, Target{URL: "https://198.41.0.4/", Host: "198.41.0.4"}},
	} {
		got, err := TargetOf(t.Context(), c.config, doorForTests())
		if err != nil {
			t.Errorf("%s: %v", c.config.URL, err)
		}
		if diff := cmp.Diff(fmt.Sprint([]string{c.want.URL, c.want.Host, c.want.Token, c.want.Scheme, c.want.Credentials}), fmt.Sprint([]string{got.URL, got.Host, got.Token, got.Scheme, got.Credentials})); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAReceiverIsRefusedByARule(t *testing.T) {
	long := strings.Repeat("canary", 1000)
	for _, c := range []struct {
		config api.PushConfig
		place  string
		rule   string
		why    string // what is said of it
	}{
		{api.PushConfig{}, "/url", RuleURL, "missing"},
		{api.PushConfig{URL: "canary"}, "/url", RuleURL, "doesn't begin with https"},
		{api.PushConfig{URL: "ftp://canary.example/"}, "/url", RuleURL, "doesn't begin with https"},
		{api.PushConfig{URL: "https:canary.example"}, "/url", RuleURL, "an address"},
		{api.PushConfig{URL: "https:///canary"}, "/url", RuleURL, "an address"},
		{api.PushConfig{URL: "https://ada:canary@good.example/"}, "/url", RuleURL, "user or a password"},
		{api.PushConfig{URL: "https://good.example/#canary"}, "/url", RuleURL, "a fragment"},
		{api.PushConfig{URL: "https://good.example/can ary"}, "/url", RuleURL, "isn't visible ASCII"},
		{api.PushConfig{URL: "https://good.example/canäry"}, "/url", RuleURL, "isn't visible ASCII"},
		{api.PushConfig{URL: "https://good.example/" + long}, "/url", RuleURL, "more than 2048"},
		{api.PushConfig{URL: "https://good.example:0/canary"}, "/url", RuleURL, "no port"},
		{api.PushConfig{URL: "https://127.1/canary"}, "/url", RuleURL, "names no host"},
		{api.PushConfig{URL: "https://0x7f.1/canary"}, "/url", RuleURL, "names no host"},
		{api.PushConfig{URL: "http://good.example/canary"}, "/url", RuleTLS, "only https"},
		{api.PushConfig{URL: "http://127.0.0.1/canary"}, "/url", RuleTLS, "only https"},
		{api.PushConfig{URL: "https://canary-private.example/"}, "/url", RulePrivate, "no public address"},
		{api.PushConfig{URL: "https://canary-mapped.example/"}, "/url", RulePrivate, "no public address"},
		{api.PushConfig{URL: "https://canary-nobody.example/"}, "/url", RulePrivate, "no public address"}, // as one inside
		{api.PushConfig{URL: "https://127.0.0.1/canary"}, "/url", RulePrivate, "no public address"},
		{api.PushConfig{URL: "https://[::1]/canary"}, "/url", RulePrivate, "no public address"},
		{api.PushConfig{URL: "https://[::ffff:169.254.169.254]/canary"}, "/url", RulePrivate, "no public address"},
		{api.PushConfig{URL: "https://good.example/", ID: long}, "/id", "", "128 visible"},
		{api.PushConfig{URL: "https://good.example/", ID: "can\nary"}, "/id", "", "128 visible"},
		{api.PushConfig{URL: "https://good.example/", Token: "can\r\nary"}, "/token", "", "4096 visible"},
		{api.PushConfig{URL: "https://good.example/", Token: long}, "/token", "", "4096 visible"},
		{api.PushConfig{URL: "https://good.example/", Scheme: "canary", Credentials: "c"}, "/scheme", "", "neither Bearer"},
		{api.PushConfig{URL: "https://good.example/", Credentials: "canary"}, "/scheme", "", "neither Bearer"},
		{api.PushConfig{URL: "https://good.example/", Scheme: "Bearer", Credentials: "can ary"}, "/credentials", "", "4096 visible"},
		{api.PushConfig{URL: "https://good.example/", Scheme: "Bearer", Credentials: long}, "/credentials", "", "4096 visible"},
	} {
		_, err := TargetOf(t.Context(), c.config, doorForTests())
		wantKind(t, err, fault.Input)
		findings := fault.Public(err).Findings
		if len(findings) != 1 || findings[0].Pointer != c.place || !strings.HasSuffix(findings[0].Message, c.rule+")") && c.rule != "" {
			t.Errorf("%.100s: %+v", c.config.URL, findings)
		}
		if told := fault.Public(err); !errors.Is(err, api.ErrReceiver) || !strings.Contains(told.Msg, c.place[1:]+": ") || !strings.Contains(told.Msg, c.why) || told.Hint == "" || told.Hint != findings[0].Hint {
			t.Errorf("%.100s: %q, %q", c.config.URL, told.Msg, told.Hint)
		}
		if setting := strings.Contains(fault.Public(err).Hint, "a2a.push_private"); setting != (c.rule == RuleTLS || c.rule == RulePrivate) {
			t.Errorf("%.100s: it names the setting: %v", c.config.URL, setting)
		}
		if text := fmt.Sprint(err, findings); strings.Contains(text, "canary") || strings.Contains(text, "10.9.8.7") {
			t.Errorf("the refusal says too much: %s", text)
		}
	}
}

func TestATargetIsNeverPrinted(t *testing.T) {
	to := Target{URL: "https://canary.example", Host: "canary", Token: "canary", Credentials: "canary"}
	log := &testkit.Log{}
	slog.New(slog.NewJSONHandler(log, nil)).Info("x", "to", to)
	if text := fmt.Sprint(to, &to) + fmt.Sprintf("%+v %#v %s", to, to, to) + log.String(); strings.Contains(text, "canary") {
		t.Errorf("%s", text)
	}
}
