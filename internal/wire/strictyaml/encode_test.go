package strictyaml

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsEncodedIsReadAgain(t *testing.T) {
	texts := []any{
		"", " ", "a", " a ", "yes", "No", "on", "null", "~", "true", "1", "-1", "1.5", "0x1F", "1e3", ".inf", ".nan", "2026-01-01", "2026-01-01T00:00:00Z", "<<", "=", "- a", "a: b", "a #b", "#", "&x", "*x", "!t", "|", ">",
		"%", "@", "`", "'", `"`, `\`, "a\nb", "a\n", "\t", "a\tb", "é", "日本", "\u0085", "\u2028", "\ufeff", "\x00", "\x1b[31m", "---", "...", "{", "[", "a,b", "?", ":", strings.Repeat("long words ", 50),
	}
	object := map[string]any{"texts": texts, "n": int64(1), "big": uint64(math.MaxUint64), "f": 1.5, "whole": 1e300, "none": nil, "yes": true, "list": []any{[]any{}, map[string]any{}, []any{map[string]any{"a": nil}}}}
	for _, text := range texts {
		if key, _ := text.(string); len(key) <= maxKey {
			object["key "+key], object[key] = key, key
		}
	}
	raw, err := Encode(object, []string{"n", "missing", "list"})
	if err != nil {
		t.Fatal(err)
	}
	doc, findings := Parse("a.yaml", raw)
	if findings != nil {
		t.Fatalf("%v in\n%s", findings, raw)
	}
	if diff := cmp.Diff(object, doc.Value); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(string(raw), "\"n\": 1\nlist:\n") || doc.LineAt("/none") < doc.LineAt("/list") {
		t.Errorf("it begins with %.60s", raw)
	}
	again, err := Encode(doc.Value, []string{"n", "missing", "list"})
	if err != nil || string(again) != string(raw) {
		t.Errorf("the second time it is another text, %v", err)
	}
}

func TestTheOrderOfKeys(t *testing.T) {
	raw, err := Encode(map[string]any{"b": int64(1), "a": map[string]any{"z": nil, "name": "x", "c": []any{map[string]any{"y": true, "kind": "k", "name": "n"}}}}, []string{"name", "kind"})
	want := "a:\n  name: x\n  c:\n    - name: \"n\"\n      kind: k\n      \"y\": true\n  z: null\nb: 1\n"
	if err != nil || string(raw) != want {
		t.Errorf("%s%v", raw, err)
	}
}

func TestTextsOfAllSortsAreReadAgain(t *testing.T) {
	letters := strings.Split("a|b|\n|\n|\t| | |#|:|-|<|<|'|\"|\\|\r|é|\u0085|\u2028|\u2029|\ufeff|*|&|!|%|{|}|[|]|,|?|=|~|0|1|.|e", "|")
	letters = append(letters, "|")
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		for range random.IntN(8) {
			b.WriteString(letters[random.IntN(len(letters))])
		}
		want := map[string]any{b.String(): []any{b.String(), map[string]any{"k": b.String()}}}
		raw, err := Encode(want, nil)
		if err != nil {
			t.Errorf("%q: %v", b.String(), err)
			continue
		}
		doc, findings := Parse("a.yaml", raw)
		if doc == nil || findings != nil || cmp.Diff(want, doc.Value) != "" {
			t.Errorf("%q: %v from %q", b.String(), findings, raw)
		}
	}
}
