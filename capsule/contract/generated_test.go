package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var update = flag.Bool("update", false, "write what is found into the refused documents")

// sample is a schema as a generator writes it, and what it has to mean.
type sample struct {
	From     string          `json:"from"`
	Schema   json.RawMessage `json:"schema"`
	Warnings []string        `json:"warnings"` // "pointer|message"
	Holds    []json.RawMessage
	Breaks   []struct {
		Payload  json.RawMessage
		Findings []string // "pointer|message"
	}
	Findings []string // of a refused one: "pointer|message|hint"
}

// eachSample tests the documents of a directory; there have to be twenty.
func eachSample(t *testing.T, dir string, test func(t *testing.T, file string, s sample)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
	if err != nil || len(files) != 20 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s sample
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { test(t, file, s) })
	}
}

// asInput is a contract whose input is the schema as it was generated.
func asInput(schema json.RawMessage) []byte {
	return []byte(`{"input":` + string(schema) + `,"output":{"type":"object"}}`)
}

func shortly(found []fault.Finding) []string {
	list := []string{}
	for _, f := range found {
		list = append(list, f.Pointer+"|"+f.Message)
	}
	return list
}

func TestGeneratedSchemasMeanWhatTheySay(t *testing.T) {
	eachSample(t, "taken", func(t *testing.T, _ string, s sample) {
		contract, found := Parse(asInput(s.Schema))
		if diff := cmp.Diff(s.Warnings, shortly(found)); diff != "" || contract == nil {
			t.Fatalf("Parse: %s", diff)
		}
		alone, found := Compile(s.Schema)
		if alone == nil {
			t.Fatalf("Compile: %v", found)
		}
		for name, schema := range map[string]*Schema{"as an input": contract.Input, "alone": alone} {
			for _, p := range s.Holds {
				if found := schema.Validate(payload(t, string(p))); len(found) > 0 {
					t.Errorf("%s: %s is refused: %v", name, p, found)
				}
			}
			for _, c := range s.Breaks {
				if diff := cmp.Diff(c.Findings, shortly(schema.Validate(payload(t, string(c.Payload))))); diff != "" {
					t.Errorf("%s: %s: %s", name, c.Payload, diff)
				}
			}
		}
	})
}

func TestSchemasThatCantBeTranslatedAreRefused(t *testing.T) {
	eachSample(t, "refused", func(t *testing.T, file string, s sample) {
		contract, found := Parse(asInput(s.Schema))
		if contract != nil || len(fault.Errors(found)) == 0 {
			t.Fatal("it was taken")
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Pointer+"|"+f.Message+"|"+f.Hint)
			checkPlace(t, s.Schema, f)
		}
		if *update {
			s.Findings = got
			rewrite(t, file, s)
		}
		if diff := cmp.Diff(s.Findings, got); diff != "" {
			t.Error(diff)
		}
	})
}

// checkPlace makes sure that a finding leads to something that the author wrote, and says
// how to mend it.
func checkPlace(t *testing.T, schema json.RawMessage, f fault.Finding) {
	t.Helper()
	document, err := strictjson.Decode(asInput(schema))
	if err != nil {
		t.Fatal(err)
	}
	var path []string
	for _, part := range strings.Split(f.Pointer, "/")[1:] {
		path = append(path, strictjson.Unescape(part))
	}
	if _, ok := strictjson.Lookup(document, path); !ok || f.Hint == "" {
		t.Errorf("%v leads nowhere, or says nothing", f)
	}
}

func rewrite(t *testing.T, file string, s sample) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		From     string          `json:"from"`
		Schema   json.RawMessage `json:"schema"`
		Findings []string        `json:"findings"`
	}{s.From, s.Schema, s.Findings})
	if err == nil {
		err = os.WriteFile(file, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
