package runflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// A key of the environment goes to the place that the environment names with it, or nowhere.
func TestAKeyOfTheEnvironmentGoesToItsPlaceAlone(t *testing.T) {
	for name, c := range map[string]struct {
		env     map[string]string
		address string // of openai; "refused" for none
		kind    catalog.Kind
	}{
		"the vendor":     {nil, "", catalog.OpenAI},
		"a place":        {map[string]string{"OPENAI_BASE_URL": "https://llm.example/v1/"}, "https://llm.example/v1", catalog.Compatible},
		"an old name":    {map[string]string{"OPENAI_API_BASE": "http://127.0.0.1:9/v1"}, "http://127.0.0.1:9/v1", catalog.Compatible},
		"two places":     {map[string]string{"OPENAI_API_BASE": "https://a/", "OPENAI_BASE_URL": "https://b/"}, "refused", ""},
		"in plain":       {map[string]string{"OPENAI_BASE_URL": "http://llm.example/v1"}, "refused", ""},
		"no address":     {map[string]string{"OPENAI_BASE_URL": "llm.example"}, "refused", ""},
		"another secret": {map[string]string{"OPENAI_BASE_URL": "https://u:canary@llm.example"}, "refused", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"} {
				t.Setenv(v, c.env[v])
			}
			t.Setenv("OPENAI_API_KEY", "key")
			known, err := (&Models{}).Catalog(secrets.Files{})
			if c.address == "refused" {
				if !fault.Is(err, fault.Input) || len(known.Providers) > 0 || strings.Contains(err.Error(), "canary") {
					t.Errorf("%v, %+v", err, known)
				}
				return
			}
			p := known.Providers["openai"]
			model, there := known.Model("gpt-4o-mini")
			other, _ := known.Model("gpt-99")
			window, otherWindow := known.Limits(model).Context, known.Limits(other).Context
			if otherWindow != ownWindow || (window == 128_000) != (c.address == "") || (window == ownWindow) != (c.address != "") {
				t.Errorf("gpt-4o-mini reads %d tokens, an unknown model %d", window, otherWindow)
			}
			if err != nil || !there || p.BaseURL != c.address || p.Kind != c.kind || (model.Price != nil) != (c.address == "") {
				t.Errorf("%+v, %+v, %v", p, model, err)
			}
		})
	}
}

func TestASecretOfTheCommandIsAProvidersKey(t *testing.T) {
	for _, v := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"} {
		t.Setenv(v, "")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "https://llm.example")
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("the key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := (&Models{}).Catalog(secrets.Files{Named: map[string]string{"ANTHROPIC_API_KEY": path}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := known.Key("ANTHROPIC_API_KEY")
	if err != nil || string(key) != "the key" || known.Providers["anthropic"].BaseURL != "https://llm.example/v1" {
		t.Errorf("%+v, %v", known, err)
	}
	if m, there := known.Model("claude-x"); !there || m.Use[0].Provider != "anthropic" {
		t.Errorf("claude-x is asked of %+v", m.Use)
	}
	if m, there := known.Model("gpt-4o-mini"); there {
		t.Errorf("without a key gpt-4o-mini is asked of %+v", m.Use)
	}
}
