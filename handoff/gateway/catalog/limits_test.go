package catalog

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestTheTableOfLimitsCanBeRead(t *testing.T) {
	t.Parallel()
	l, asOf := KnownLimits(Provider{Kind: OpenAI}, "gpt-4o-mini")
	if _, err := time.Parse(time.DateOnly, asOf); err != nil || l.Context != 128_000 || l.MaxOutput != 16_384 || l.Images == nil || !*l.Images {
		t.Errorf("%+v of %q", l, asOf)
	}
	if l, _ := KnownLimits(Provider{Kind: Compatible, BaseURL: "https://elsewhere/v1"}, "gpt-4o-mini"); l != (Limits{}) {
		t.Errorf("another server has a vendor's limits: %+v", l)
	}
	for host, models := range limits().rows {
		for name, l := range models {
			if l.Context <= 0 || l.MaxOutput > l.Context {
				t.Errorf("%s at %s: %+v", name, host, l)
			}
		}
	}
	// A vendor moves these names to models of other windows.
	for _, moving := range []string{"mistral-large-latest", "deepseek-chat"} {
		for host := range limits().rows {
			if limits().rows[host][moving] != nil {
				t.Errorf("%s bounds nothing", moving)
			}
		}
	}
}

func TestTheGuideHasTheDateOfTheLimits(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, asOf := KnownLimits(Provider{}, ""); !strings.Contains(string(guide), "a table of limits of "+asOf) {
		t.Errorf("the guide has no %q", asOf)
	}
}

// What a file says goes before what is known; of several in use each limit is the one that holds whoever answers.
func TestTheLimitsOfAModelAreThoseOfAllThatMayAnswer(t *testing.T) {
	t.Parallel()
	known := Catalog{Providers: map[string]Provider{
		"openai": {Kind: OpenAI}, "anthropic": {Kind: Anthropic}, "gpu": {Kind: Compatible, BaseURL: "http://127.0.0.1/v1"},
		"groq": {Kind: Compatible, BaseURL: "https://api.groq.com/openai/v1"}, "proxy": {Kind: OpenAI, BaseURL: "https://elsewhere/v1"},
	}}
	for name, c := range map[string]struct {
		use              string
		set              Model
		context, longest int64
		images           bool
	}{
		"a known one":               {use: "openai/gpt-4o-mini", context: 128_000, longest: 8192, images: true},
		"an unknown one":            {use: "gpu/qwen3", longest: 8192},
		"a vendor's at another":     {use: "proxy/gpt-4o", longest: 8192},
		"one of short answers":      {use: "openai/gpt-4-turbo", context: 128_000, longest: 4096, images: true},
		"one with a beta":           {use: "anthropic/claude-sonnet-4-5", context: 1_000_000, longest: 8192, images: true},
		"the largest of two":        {use: "openai/gpt-4o openai/gpt-5-mini", context: 400_000, longest: 8192, images: true},
		"the shortest of two":       {use: "openai/gpt-4o anthropic/claude-3-haiku-20240307", context: 200_000, longest: 4096, images: true},
		"one of two sees":           {use: "openai/gpt-4o groq/llama-3.1-8b-instant", context: 131_072, longest: 8192},
		"one of two is unknown":     {use: "openai/gpt-4-turbo gpu/qwen3", longest: 4096},
		"the file says more":        {use: "openai/gpt-4-turbo", set: Model{Context: 7, MaxOutput: 9000, Images: new(false)}, context: 7, longest: 9000},
		"the file says of a server": {use: "gpu/qwen3", set: Model{Context: 9, Images: new(true)}, context: 9, longest: 8192, images: true},
	} {
		m := c.set
		for use := range strings.FieldsSeq(c.use) {
			m.Use = append(m.Use, useOf(use))
		}
		if l := known.Limits(m); l.Context != c.context || l.MaxOutput != c.longest || *l.Images != c.images {
			t.Errorf("%s: %d, %d, %v", name, l.Context, l.MaxOutput, *l.Images)
		}
	}
}
