package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

const whole = `providers:
  openai: {kind: openai, key: openai}
  anthropic: {kind: anthropic, key: anthropic}
  gpu: {kind: compatible, base_url: "http://10.0.0.5:8000/v1/", plain_http: true, dialects: [chat, messages], concurrency: 16, stream_usage: false}
  demo: {kind: script, answers: demo.yaml, fields: known}
models:
  small: {use: [openai/gpt-5-mini, gpu/org/qwen3], price: {input: 0.25, cached: 0.025, output: 2}, max_output: 8192, rpm: 500, tpm: 200000}
  claude: {use: [anthropic/claude], price: {input: 3, cache_write: 3.75, output: 15}, allow: [web_search, remote_urls, "field:service_tier"], images: true, context: 200000}
  gemini-2.5: {use: [gpu/qwen3], order: race, prices: {gpu/qwen3: {input: 1, output: 2}}}
`

func TestATableOfProvidersAndModels(t *testing.T) {
	got, findings := Read("models.yaml", []byte(whole))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	want := Catalog{
		Providers: map[string]Provider{
			"openai":    {Kind: OpenAI, Key: "openai", Dialects: []Dialect{Chat, Responses, Embeddings}},
			"anthropic": {Kind: Anthropic, Key: "anthropic", Dialects: []Dialect{Messages}},
			"gpu":       {Kind: Compatible, BaseURL: "http://10.0.0.5:8000/v1", PlainHTTP: true, Dialects: []Dialect{Chat, Messages}, Concurrency: 16, NoUsage: true},
			"demo":      {Kind: Script, Answers: "demo.yaml", Dialects: Dialects()},
		},
		Models: map[string]Model{
			"small":      {Use: []Use{{"openai", "gpt-5-mini"}, {"gpu", "org/qwen3"}}, Price: &Price{250_000_000, 25_000_000, 250_000_000, 2_000_000_000}, MaxOutput: 8192, RPM: 500, TPM: 200000},
			"claude":     {Use: []Use{{"anthropic", "claude"}}, Price: &Price{3_000_000_000, 3_000_000_000, 3_750_000_000, 15_000_000_000}, Allow: []string{"web_search", "remote_urls", "field:service_tier"}, Images: new(true), Context: 200_000},
			"gemini-2.5": {Use: []Use{{"gpu", "qwen3"}}, Order: Race, Prices: map[Use]Price{{"gpu", "qwen3"}: {1_000_000_000, 1_000_000_000, 1_000_000_000, 2_000_000_000}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := got.Dialects(got.Models["small"]); !cmp.Equal(got, Dialects()) {
		t.Error(got)
	}
}

func TestWhatIsWrongInATableIsFoundWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"models: [":                         "f:1: it isn't YAML",
		"- a":                               "f:1: it isn't a map",
		"provider: {}":                      `f:1: provider: nothing has this name (did you mean providers?)`,
		"providers:\n  A b: {kind: openai}": "f:2: providers.A b: a provider can't have this name",
		"providers:\n  p:\n    kind: open":  "f:2: providers.p: it has no kind that there is",
		"providers:\n  p: {kind: openai, keys: x}":                 "f:2: providers.p.keys: nothing has this name (did you mean key?)",
		"providers:\n  p: {kind: compatible}":                      "it has no base_url",
		"providers:\n  p: {kind: compatible, base_url: x}":         "it isn't an address",
		"providers:\n  p: {kind: openai, base_url: ftp://x}":       "it isn't an address",
		"providers:\n  p: {kind: openai, base_url: http://x/v1}":   "unencrypted to \"x\"",
		"providers:\n  p: {kind: openai, base_url: https://k@x/}":  "it holds more than a host and a path",
		"providers:\n  p: {kind: script}":                          "it has no answers",
		"providers:\n  p: {kind: script, answers: a, key: k}":      "a script has no key",
		"providers:\n  p: {kind: openai, answers: a}":              "only a script has answers",
		"providers:\n  p: {kind: openai, concurrency: 0}":          "f:2: providers.p.concurrency: it isn't a number from 1",
		"providers:\n  p: {kind: openai, plain_http: 1}":           "it isn't true or false",
		"providers:\n  p: {kind: openai, fields: some}":            "it is neither any nor known",
		"providers:\n  p: {kind: openai, dialects: [talk]}":        "f:2: providers.p.dialects.0: it isn't one of",
		"models:\n  m: {use: [p/m], context: 0}":                   "f:2: models.m.context: it isn't a number from 1",
		"models:\n  m: {}":                                         "f:2: models.m: it uses nothing",
		"models:\n  m: {use: p/m}":                                 "it isn't a list",
		"models:\n  m:\n    use:\n      - p":                       "f:4: models.m.use.0: it isn't one of",
		"models:\n  m: {use: [p/m]}":                               `f:2: models.m.use.0: there is no provider "p"`,
		"models:\n  m: {use: [p/m], price: {input: -1}}":           "it isn't a price",
		"models:\n  m: {use: [p/m], price: {input: 0.0000000001}}": "it isn't a price",
		"models:\n  m: {use: [p/m], price: {input: 1000001}}":      "it isn't a price",
		"models:\n  m: {use: [p/m], price: {input: \"1\"}}":        "it isn't a price",
		"models:\n  m: {use: [p/m], images: 1}":                    "f:2: models.m.images: it isn't true or false",
		"models:\n  m: {use: [p/m], order: fastest}":               "f:2: models.m.order: it isn't an order",
		"models:\n  m: {use: [p/m], prices: {p/n: {input: 1}}}":    "f:2: models.m.prices.p/n: it isn't in use",
		"models:\n  m: {use: [p/m], allow: [EVERYTHING]}":          "models.m.allow.0: it isn't one of",
		"models:\n  \"m m\": {use: [p/m]}":                         "a model can't have this name",
	} {
		_, findings := Read("f", []byte(text))
		var all []string
		for _, f := range findings {
			all = append(all, f.String())
			if f.Hint == "" {
				t.Errorf("%s has no hint", f)
			}
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, want) {
			t.Errorf("%q:\n%s\nwant %s", text, got, want)
		}
	}
}

// A server's file hands its two tables over node by node.
func TestTablesOfAnotherFile(t *testing.T) {
	root, finding := strictyaml.ParseNode("aod.yaml", []byte("# ours\n\n"+whole))
	if finding != nil {
		t.Fatal(finding)
	}
	docs := map[string]*strictyaml.Document{}
	for i := 0; i < len(root.Content); i += 2 {
		docs[root.Content[i].Value] = node(t, root.Content[i+1])
	}
	providers, first := Providers(docs["providers"])
	models, second := Models(docs["models"])
	want, _ := Read("f", []byte(whole))
	if diff := cmp.Diff(want, Catalog{Providers: providers, Models: models}); diff != "" || len(first)+len(second) > 0 {
		t.Error(first, second, diff)
	}
	delete(providers, "gpu")
	findings := Check(docs["models"], Catalog{Providers: providers, Models: models})
	if len(findings) != 2 || findings[1].Line != 9 || !strings.Contains(findings[1].Message, `small.use.1: there is no provider "gpu"`) {
		t.Error(findings)
	}
}

func node(t *testing.T, n *yaml.Node) *strictyaml.Document {
	t.Helper()
	doc, findings := strictyaml.FromNode("aod.yaml", n)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return doc
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("models: {m: {use: [a/b], price: {input: 1e-9}}}"))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		c, findings := Read("f", raw)
		if len(findings) > 0 {
			return
		}
		for name, m := range c.Models {
			if len(m.Use) == 0 || m.Price != nil && (m.Price.Input < 0 || m.Price.Cached < 0) {
				t.Errorf("%s: %+v", name, m)
			}
		}
	})
}
