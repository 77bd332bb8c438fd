package au

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func FuzzParseCard(f *testing.F) {
	small := `{"name":"x","version":"1.0.0","description":"x","capabilities":["a"],"inputs":[{"media_type":"*/*","description":""}],"outputs":[{"media_type":"a/b","description":""}],"config":{"a":{"type":"integer","description":"","default":1}}}`
	for _, seed := range []string{small, ocrCard, with(`"name"`, `"name": "x", "name"`), `{}`, `[]`, with("100", "1e2"), with("100", "9e99"), with(`"lang"`, `"describe"`), with(`"ocr"`, "7"), ocrCard + "{}", with(`"image/*"`, `"text/csv;a=b"`)} {
		f.Add([]byte(seed))
	}
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		card, err := ParseCard(raw)
		if err != nil {
			if kind := fault.KindOf(err); card != nil || kind != fault.Input && kind != fault.TooLarge || kind == fault.Input && len(fault.Public(err).Findings) == 0 {
				t.Fatalf("ParseCard = %v, %v", card, err)
			}
			return
		}
		again, err := ParseCard(card.JSON())
		if err != nil {
			t.Fatalf("the card doesn't survive: %v", err)
		}
		if diff := cmp.Diff(card, again, cmp.AllowUnexported(Card{})); diff != "" {
			t.Fatal(diff)
		}
		if card.Name == "" || card.Version == "" || len(card.Inputs) == 0 || !card.Accepts("") {
			t.Fatalf("a card without what all cards have: %+v", card)
		}
		if _, err := card.Args(Call{Args: []string{"--prompt", "x"}}); err != nil && !fault.Is(err, fault.Input) {
			t.Fatal(err)
		}
	})
}

func FuzzParseOutput(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":[1,-2.5e+3,"x\u00e9\ud83d\ude00",true,null]}`, `{"a":1,"\u0061":2}`, "{}{}", "log\n{}", "{} log", "[[[", `"x"`, "\xff", "\xef\xbb\xbf{}",
		`{"warnings":["a",1]}`, `{"w\u0061rnings":{}}`, `["\ud800"]`, "1e999", "[1e999]", "[info] x\n[1]", `{"a":"\\u","b":"\\\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	fuzzbound.Run(f, func(t *testing.T, text []byte) {
		const limit = 1 << 12
		out, err := ParseOutput(bytes.NewReader(text), limit)
		if err != nil {
			var bad *OutputError
			if !errors.As(err, &bad) || out != nil || outputHints[bad.Problem] == "" || bad.Message == "" || bad.Offset < 0 || bad.Offset > len(text) {
				t.Fatalf("ParseOutput = %v, %#v", out, err)
			}
			if len(text) <= limit && json.Valid(text) && bad.Problem != OutputNotUTF8 && bad.Problem != OutputNotStructured && bad.Problem != OutputTooDeep && bad.Problem != OutputAmbiguous {
				t.Fatalf("a JSON document is said to be %s", bad.Problem)
			}
			return
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("ParseOutput took what encoding/json refuses: %v", err)
		}
		if _, err := json.Marshal(v); err != nil || !bytes.Contains(text, out.JSON()) {
			t.Fatalf("the document doesn't survive: %s", out.JSON())
		}
		checkWarnings(t, v, out.Warnings())
	})
}

// checkWarnings compares the warnings with those that encoding/json finds.
func checkWarnings(t *testing.T, v any, got []string) {
	t.Helper()
	object, _ := v.(map[string]any)
	list, _ := object["warnings"].([]any)
	var want []string
	for _, w := range list {
		if s, ok := w.(string); ok {
			runes := []rune(s)
			want = append(want, string(runes[:min(len(runes), MaxWarningRunes)]))
		}
	}
	if len(want) <= MaxWarnings && cmp.Diff(want, got) != "" {
		t.Fatalf("warnings %q, want %q", got, want)
	}
}

func FuzzSniff(f *testing.F) {
	for _, seed := range []string{"", "\x89PNG\r\n\x1a\n", "%PDF-1", `{"a":`, "[1]", "P5 1", "<svg", "II*\x00", "é", "\x00", strings.Repeat("é", 300), "PK\x03\x04"} {
		f.Add([]byte(seed))
	}
	form := regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)
	card := &Card{Inputs: []Media{{Type: "*/*"}}}
	fuzzbound.Run(f, func(t *testing.T, head []byte) {
		media := Sniff(head)
		if (media == "") != (len(head) == 0) || media != "" && !form.MatchString(media) {
			t.Fatalf("Sniff = %q", media)
		}
		if essence(media) != media {
			t.Fatalf("Sniff says %q, a card's name for it is %q", media, essence(media))
		}
		if Sniff(head[:min(len(head), SniffBytes)]) != media {
			t.Fatal("what is behind the head counts")
		}
		if exact := (&Card{Inputs: []Media{{Type: media}}}); !card.Accepts(media) || !exact.Accepts(media) {
			t.Fatalf("a card that takes it doesn't accept %q", media)
		}
	})
}

func FuzzArgs(f *testing.F) {
	for _, seed := range []string{"--fast", "--lang\nx", "--lang=-x\n--", "a\n--deskew=false", "--\n--x", "--max-regions\n-5", "--model-path\n//a/./b", "--fast\n--\ntrue", "--prompt\n-", "-"} {
		f.Add(seed)
	}
	card := parsed(f, strings.Replace(ocrCard, `"default": null`, `"default": ""`, 1))
	fuzzbound.Run(f, func(t *testing.T, lines string) {
		cmd, err := card.Args(Call{Args: strings.Split(lines, "\n")})
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Input && kind != fault.TooLarge {
				t.Fatal(err)
			}
			return
		}
		again, err := card.Args(Call{Args: cmd.Args})
		if diff := cmp.Diff(cmd, again); err != nil || diff != "" {
			t.Fatalf("what is given isn't what is read: %q: %v\n%s", cmd.Args, err, diff)
		}
	})
}
