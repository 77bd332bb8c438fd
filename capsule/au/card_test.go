package au

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/schemas"
)

const ocrCard = `{
  "name": "agx-ocr", "version": "0.1.0", "description": "Reads text in pictures.",
  "capabilities": ["ocr", "image-to-text"],
  "inputs": [{"media_type": "image/*", "description": "a picture"}],
  "outputs": [{"media_type": "application/json", "description": "its text"}],
  "config": {
    "model-path": {"type": "string", "description": "The model's file.", "default": null},
    "max-regions": {"type": "integer", "description": "At most so many regions.", "default": 100},
    "fast": {"type": "boolean", "description": "Less careful.", "default": false},
    "deskew": {"type": "boolean", "description": "Turn it upright first.", "default": true},
    "lang": {"type": "string", "description": "The language."}
  },
  "exit_codes": {"3": "no text found"}
}`

// with changes one piece of the card above.
func with(old, replacement string) string { return strings.Replace(ocrCard, old, replacement, 1) }

func parsed(t testing.TB, raw string) *Card {
	t.Helper()
	card, err := ParseCard([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func TestParseCardReadsEveryField(t *testing.T) {
	card := parsed(t, "\n"+ocrCard+"\n")
	want := &Card{
		Name: "agx-ocr", Version: "0.1.0", Description: "Reads text in pictures.", Capabilities: []string{"ocr", "image-to-text"},
		Inputs:  []Media{{"image/*", "a picture"}},
		Outputs: []Media{{"application/json", "its text"}},
		Config: []Parameter{
			{Name: "deskew", Type: TypeBoolean, Description: "Turn it upright first.", Default: true},
			{Name: "fast", Type: TypeBoolean, Description: "Less careful.", Default: false},
			{Name: "lang", Type: TypeString, Description: "The language."},
			{Name: "max-regions", Type: TypeInteger, Description: "At most so many regions.", Default: json.Number("100")},
			{Name: "model-path", Type: TypeString, Description: "The model's file.", Required: true},
		},
		ExitCodes: map[int]string{3: "no text found"},
	}
	if diff := cmp.Diff(want, card, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "raw" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if string(card.JSON()) != ocrCard {
		t.Errorf("JSON() = %s", card.JSON())
	}
	if !card.NeedsModel() {
		t.Error("a card with a model-path needs a model")
	}
}

func TestParseCardTakesWhatTheSpecificationShows(t *testing.T) {
	cases := map[string]string{
		"a card without config": `{"name":"agx-echo","version":"1.0.0","description":"Echo AU that returns input hash","capabilities":["hash","checksum"],
			"inputs":[{"media_type":"*/*","description":"Any binary data"}],"outputs":[{"media_type":"application/json","description":"SHA256 hash"}]}`,
		"a version with a prerelease":   with(`"0.1.0"`, `"1.0.0-rc.1+linux"`),
		"a media type with a parameter": with(`"image/*"`, `"text/plain; charset=utf-8"`),
		"no capability":                 with(`["ocr", "image-to-text"]`, `[]`),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) { parsed(t, raw) })
	}
}

func TestParseCardRefuses(t *testing.T) {
	cases := []struct {
		name, raw, pointer, message string
	}{
		{"nothing", " \n", "", "expected one JSON object and nothing before it"},
		{"a log line before the card", "loading\n" + ocrCard, "", "expected one JSON object and nothing before it"},
		{"an array", `[]`, "", "expected one JSON object and nothing before it"},
		{"text after the card", ocrCard + "done", "", "it is not valid JSON: line 14, column 2: there is more text after the end of the document"},
		{"a field that stands twice", with(`"version": "0.1.0"`, `"version": "0.1.0", "version": "0.1.0"`), "/version", `it is not valid JSON: line 2, column 42: the field "version" stands twice in one object`},
		{"too deep a card", with(`"0.1.0"`, strings.Repeat("[", 80)+strings.Repeat("]", 80)), "", "it is not valid JSON: line 2, column 97: the document is nested more than 64 levels deep"},
		{"invalid UTF-8", with("Reads", "\xff"), "", "it is not valid JSON: line 2, column 58: the text is not valid UTF-8"},
		{"no name", with(`"name": "agx-ocr", `, ""), "", `required field "name" is missing`},
		{"an empty description", with("Reads text in pictures.", ""), "/description", "is too short: at least 1 characters"},
		{"a description that drives a terminal", with("Reads", `\u001b[2J`), "/description", "does not match the pattern ^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$"},
		{"a description with an 8-bit control", with("Reads", `\u009b2J`), "/description", "does not match the pattern ^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$"},
		{"no inputs", with(`[{"media_type": "image/*", "description": "a picture"}]`, `[]`), "/inputs", "has too few items: at least 1"},
		{"an input without a description", with(`, "description": "a picture"`, ``), "/inputs/0", `required field "description" is missing`},
		{"a type that there isn't", with(`"integer"`, `"float"`), "/config/max-regions/type", `is not one of the allowed values: "string", "integer", "boolean"`},
		{"a default of another type", with(`100`, `"many"`), "/config/max-regions/default", "expected null or integer, got string"},
		{"a default that is a list", with(`100`, `[]`), "/config/max-regions/default", "expected null or boolean or integer or string, got array"},
		{"a model path that is a number", with(`"string", "description": "The model's file."`, `"integer", "description": "The model's file."`), "/config/model-path/type", `is not one of the allowed values: "string"`},
		{"a parameter called describe", with(`"lang"`, `"describe"`), "/config", `the name of field "describe" is not allowed`},
		{"a parameter that isn't a flag", with(`"lang"`, `"-lang"`), "/config", `the name of field "-lang" is not allowed`},
		{"a name for the code of success", with(`{"3"`, `{"0"`), "/exit_codes", `the name of field "0" is not allowed`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			card, err := ParseCard([]byte(c.raw))
			if card != nil || !fault.Is(err, fault.Input) {
				t.Fatalf("ParseCard = %v, %v", card, err)
			}
			for _, f := range fault.Public(err).Findings {
				if f.Pointer == c.pointer && f.Message == c.message {
					return
				}
			}
			t.Errorf("no finding %q at %q in %q", c.message, c.pointer, fault.Public(err).Findings)
		})
	}
}

// odd are cards that the specification doesn't allow and that say enough.
var odd = map[string]string{
	"a name and a version alone":     `{"name": "x", "version": "1.0.0"}`,
	"a version that isn't a semver":  with(`"0.1.0"`, `"1.0"`),
	"a version that is a number":     with(`"0.1.0"`, `1.0`),
	"no inputs":                      with(`"inputs": [{"media_type": "image/*", "description": "a picture"}],`, ""),
	"an empty list of inputs":        with(`[{"media_type": "image/*", "description": "a picture"}]`, "[]"),
	"no outputs":                     with(`"outputs": [{"media_type": "application/json", "description": "its text"}],`, ""),
	"nothing where a list could be":  with(`["ocr", "image-to-text"]`, "null"),
	"no description":                 with(`"description": "Reads text in pictures.",`, ""),
	"an empty description":           with("Reads text in pictures.", ""),
	"an input without a description": with(`, "description": "a picture"`, ""),
	"a flag without a description":   with(`, "description": "The language."`, ""),
	"a number":                       with(`"integer", "description": "At most so many regions.", "default": 100`, `"number", "description": "x", "default": 0.5`),
	"a float":                        with(`"integer", "description": "At most so many regions.", "default": 100`, `"float", "description": "x", "default": null`),
	"a name with a space":            with(`"agx-ocr"`, `"AGX OCR"`),
	"a flag with dashes":             with(`"lang"`, `"--lang"`),
	"a short flag":                   with(`"lang"`, `"-l"`),
	"a capability with a space":      with(`"ocr", `, `"read pictures", `),
}

func TestReadCardTakesACardThatIsOdd(t *testing.T) {
	for name, raw := range odd {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseCard([]byte(raw)); !fault.Is(err, fault.Input) {
				t.Errorf("ParseCard = %v", err)
			}
			card, err := ReadCard([]byte(raw))
			if err != nil || len(card.Odd) == 0 || !card.Odd[0].Warning || !strings.HasPrefix(card.OddText(), "its model card is odd: ") {
				t.Fatalf("ReadCard = %+v, %v", card, err)
			}
			if len(card.Inputs) == 0 || len(card.Outputs) == 0 || card.Name == "" {
				t.Errorf("%+v", card)
			}
		})
	}
	if card, err := ReadCard([]byte(ocrCard)); err != nil || len(card.Odd) > 0 || card.OddText() != "" {
		t.Errorf("%+v, %v", card, err)
	}
}

func TestReadCardReadsWhatIsMeant(t *testing.T) {
	card, err := ReadCard([]byte(`{"name": "a b", "version": 1.0, "config": {"--lang": {"type": "string"}, "-n": {"type": "int"}, "ratio": {"type": "float", "default": 0.5}, "fast": {"type": "bool", "short": "-f"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Card{
		Name: "a b", Version: "1.0", Inputs: []Media{{Type: "*/*"}}, Outputs: []Media{{Type: "application/json"}},
		Config: []Parameter{
			{Name: "fast", Short: "f", Type: TypeBoolean},
			{Name: "lang", Type: TypeString},
			{Name: "n", Short: "n", Type: TypeInteger, ShortOnly: true},
			{Name: "ratio", Type: TypeNumber, Default: json.Number("0.5")},
		},
	}
	if diff := cmp.Diff(want, card, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "raw" || p.String() == "Odd" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

func TestReadCardRefusesWhatSaysTooLittle(t *testing.T) {
	for name, raw := range map[string]string{
		"no name":                       `{"version": "1.0.0"}`,
		"no version":                    `{"name": "x"}`,
		"an empty name":                 with(`"agx-ocr"`, `""`),
		"a name that drives a terminal": with(`"agx-ocr"`, `"\u001b[2J"`),
		"a type that there isn't":       with(`"integer"`, `"list"`),
		"a flag called --describe":      with(`"lang"`, `"--describe"`),
		"a flag twice":                  with(`"lang"`, `"--fast"`),
		"a short flag twice":            with(`"description": "The language."`, `"short": "x"}, "x": {"type": "string"`),
		"an input without a type":       with(`"media_type": "image/*", `, ""),
		"text before the card":          "card:\n" + ocrCard,
	} {
		t.Run(name, func(t *testing.T) {
			if card, err := ReadCard([]byte(raw)); card != nil || !fault.Is(err, fault.Input) {
				t.Errorf("ReadCard = %+v, %v", card, err)
			}
		})
	}
}

func TestParseCardReportsAllAtOnce(t *testing.T) {
	_, err := ParseCard([]byte(`{"name": "a b", "version": "1", "description": 5, "capabilities": ["ocr"], "inputs": [{"media_type": "image", "description": ""}]}`))
	var pointers []string
	for _, f := range fault.Public(err).Findings {
		pointers = append(pointers, f.Pointer)
	}
	if diff := cmp.Diff([]string{"", "/description", "/inputs/0/media_type", "/name", "/version"}, pointers); diff != "" {
		t.Error(diff)
	}
}

func TestParseCardShowsNoValue(t *testing.T) {
	_, err := ParseCard([]byte(`{"name": "canary canary", "version": "canary", "description": "canary\u0000", "capabilities": ["canary "], "inputs": "canary", "outputs": [{"media_type": "canary"}],
		"config": {"a": {"type": "canary", "description": 1, "default": ["canary"]}}}`))
	public := fault.Public(err)
	shown := public.Msg + public.Hint
	for _, f := range public.Findings {
		shown += f.String()
	}
	if err == nil || strings.Contains(shown, "canary") {
		t.Errorf("ParseCard showed %s", shown)
	}
}

func TestParseCardBoundsItsSize(t *testing.T) {
	fits := with("Reads", "Reads") + strings.Repeat(" ", MaxCardBytes-len(ocrCard))
	parsed(t, fits)
	if _, err := ParseCard([]byte(fits + " ")); !fault.Is(err, fault.TooLarge) {
		t.Errorf("ParseCard = %v", err)
	}
}

func TestParseCardWarnsOfFieldsThatNothingReads(t *testing.T) {
	card := parsed(t, with(`"version"`, `"NAME": 7, "a/b": {}, "version"`))
	if card.Name != "agx-ocr" {
		t.Errorf("Name = %q: names are exact", card.Name)
	}
	misspelt := parsed(t, with(`"default": 100`, `"deflt": 100`))
	got := slices.Concat(card.Warnings, misspelt.Warnings)
	want := []string{"/NAME", "/a~1b", "/config/max-regions/deflt"}
	if len(got) != len(want) {
		t.Fatalf("warnings %v", got)
	}
	for i, f := range got {
		if f.Pointer != want[i] || !f.Warning {
			t.Errorf("warning %v, want one at %s", f, want[i])
		}
	}
}

// The fields that are read by hand are those of the schema.
func TestTheSchemaAndTheCardHaveTheSameFields(t *testing.T) {
	type object struct {
		Properties  map[string]json.RawMessage
		Definitions map[string]struct{ Properties map[string]json.RawMessage }
	}
	var schema object
	if err := json.Unmarshal(schemas.Describe(), &schema); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		properties map[string]json.RawMessage
		read       []string
	}{
		"card": {schema.Properties, cardKeys}, "media": {schema.Definitions["media"].Properties, mediaKeys},
		"parameter": {schema.Definitions["parameter"].Properties, parameterKeys},
	} {
		read := map[string]bool{}
		for _, key := range c.read {
			read[key] = true
			if _, ok := c.properties[key]; !ok {
				t.Errorf("%s: the schema has no %s", name, key)
			}
		}
		for key := range c.properties {
			if !read[key] {
				t.Errorf("%s: nothing reads %s", name, key)
			}
		}
	}
}
