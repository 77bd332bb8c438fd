package catalog

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTheTableOfPricesCanBeRead(t *testing.T) {
	t.Parallel()
	for p, model := range map[*Provider]string{
		{Kind: OpenAI}:    "gpt-4o-mini",
		{Kind: Anthropic}: "claude-sonnet-4-5",
		{Kind: Compatible, BaseURL: "https://api.deepseek.com/v1"}: "deepseek-chat",
	} {
		price, asOf := KnownPrice(*p, model)
		if _, err := time.Parse(time.DateOnly, asOf); err != nil || price == nil || price.Input == 0 || price.Output == 0 ||
			price.Cached > price.Input {
			t.Errorf("%s: %+v of %q", model, price, asOf)
		}
	}
	if price, _ := KnownPrice(Provider{Kind: Compatible, BaseURL: "https://elsewhere/v1"}, "gpt-4o-mini"); price != nil {
		t.Error("another server has a vendor's price")
	}
	for host, models := range prices().rows {
		for name, p := range models {
			if p.Input <= 0 || p.Cached > p.Input {
				t.Errorf("%s at %s: %+v", name, host, p)
			}
		}
	}
}

// The guide has the date of the table, by which a reader knows how old a price is.
func TestTheGuideHasTheDateOfThePrices(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, asOf := KnownPrice(Provider{Kind: OpenAI}, "gpt-4o-mini")
	if want := "come from a table of " + asOf; !strings.Contains(string(guide), want) {
		t.Errorf("the guide has no %q", want)
	}
}

// A key that stands in a file is told as one, and shown nowhere.
func TestAKeyInAFileIsToldAndNeverShown(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sk-proj-abcdefghijklmnop", "AIzaSyA1234567890abcdefgh", "0123456789abcdef0123456789abcdef", "gsk_abcdefghijklmnopqrst"} {
		_, findings := Read("models.yaml", []byte("providers: {p: {kind: openai, key: \""+key+"\"}}\nmodels: {m: {use: [p/x]}}"))
		if len(findings) != 1 || !strings.Contains(findings[0].String(), "providers.p.key") {
			t.Errorf("%+v", findings)
			continue
		}
		if f := findings[0]; strings.Contains(f.Message+f.Hint, key) || !strings.Contains(f.Message, "a key itself") {
			t.Errorf("%+v", f)
		}
	}
}

func TestTimeoutsAreRead(t *testing.T) {
	t.Parallel()
	c, findings := Read("models.yaml", []byte("providers: {p: {kind: openai, timeouts: {first_byte: 20s, whole: 2m}}}\n"+
		"models: {m: {use: [p/x], timeouts: {silence: 5s, whole: 1m}}}"))
	want := Timeouts{20 * time.Second, 5 * time.Second, time.Minute}
	if got := c.Models["m"].Timeouts.Over(c.Providers["p"].Timeouts); len(findings) > 0 || got != want {
		t.Errorf("%+v, %v", got, findings)
	}
	_, findings = Read("models.yaml", []byte("providers: {p: {kind: openai, timeouts: {first_byte: 20}}}\nmodels: {}"))
	if len(findings) != 1 {
		t.Errorf("%v", findings)
	}
}

// The guide has a row for each key of both tables, and none for another.
func TestTheGuideNamesEachKey(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(guide), "### Keys of a provider")
	providers, models, _ := strings.Cut(text, "### Keys of a model")
	models, _, _ = strings.Cut(models, "\n## ")
	others := map[string]string{"AnyField": "fields", "NoUsage": "stream_usage", "RPM": "rpm", "TPM": "tpm", "BaseURL": "base_url", "PlainHTTP": "plain_http"}
	upper := regexp.MustCompile(`([a-z])([A-Z])`)
	for table, of := range map[string]reflect.Type{providers: reflect.TypeFor[Provider](), models: reflect.TypeFor[Model]()} {
		rows := map[string]bool{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
			rows[row[1]] = true
		}
		for i := range of.NumField() {
			field := of.Field(i)
			key := others[field.Name]
			if key == "" {
				key = strings.ToLower(upper.ReplaceAllString(field.Name, "${1}_$2"))
			}
			if !rows[key] {
				t.Errorf("%s has no row for %s", of, key)
			}
			delete(rows, key)
		}
		if len(rows) > 0 {
			t.Errorf("%s has no keys %v", of, rows)
		}
	}
}
