package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheBlockOfWebhooks(t *testing.T) {
	c := mustLoad(t, given{file: "webhooks:\n  enabled: false\n  private: [Hooks.internal, fixed.internal=10.0.0.5]\n"})
	if got := fmt.Sprint(c.Webhooks.Enabled, c.Webhooks.Exceptions()); got != "false [hooks.internal fixed.internal=10.0.0.5]" {
		t.Error(got)
	}
	if at := source(c, "webhooks.private"); at != "aod.yaml:3" {
		t.Errorf("private comes from %s", at)
	}
	if c := mustLoad(t, given{}); !c.Webhooks.Enabled || len(c.Webhooks.Exceptions()) > 0 {
		t.Errorf("without the block: %+v", c.Webhooks)
	}
	for text, want := range map[string]string{
		"webhooks: {enabled: maybe}":      "aod.yaml:1: webhooks.enabled: ",
		"webhooks: {private: [10.0.0.5]}": `aod.yaml:1: webhooks.private: "10.0.0.5" is an address`,
		"webhooks: {url: x}":              `aod.yaml:1: there is no setting "webhooks.url"`,
	} {
		_, err := load(t, given{file: text})
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		if found := findings(t, err); len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%s: %q", text, found)
		}
	}
}
