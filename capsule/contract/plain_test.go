package contract

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPlainStandsOnItsOwn(t *testing.T) {
	cases := []struct{ name, schema, want string }{
		{
			"types have their long names", `{"type":"dict","properties":{"n":{"type":["int","null"]},"type":{"type":"list","items":{"type":"float"}}}}`,
			`{"properties":{"n":{"type":["integer","null"]},"type":{"items":{"type":"number"},"type":"array"}},"type":"object"}`,
		},
		{
			"data stays as it is", `{"type":"object","properties":{"a":{"enum":["int",{"type":"int"}],"default":{"$ref":"#/x"}}}}`,
			`{"properties":{"a":{"default":{"$ref":"#/x"},"enum":["int",{"type":"int"}]}},"type":"object"}`,
		},
		{
			"a reference has its target below $defs, once", `{"type":"object","properties":{"a":{"$ref":"#/definitions/x"},"b":{"$ref":"#/definitions/x"}}}`,
			`{"$defs":{"d1":{"format":"file_path","type":"string"}},"properties":{"a":{"$ref":"#/$defs/d1"},"b":{"$ref":"#/$defs/d1"}},"type":"object"}`,
		},
		{
			"a schema may contain itself", `{"type":"object","properties":{"next":{"$ref":"#/input"}}}`,
			`{"$defs":{"d1":{"properties":{"next":{"$ref":"#/$defs/d1"}},"type":"object"}},"properties":{"next":{"$ref":"#/$defs/d1"}},"type":"object"}`,
		},
		{
			"what draft-07 ignores beside a reference goes", `{"type":"object","properties":{"a":{"$ref":"#/definitions/x","minLength":1,"description":"A."}}}`,
			`{"$defs":{"d1":{"format":"file_path","type":"string"}},"properties":{"a":{"$ref":"#/$defs/d1","description":"A."}},"type":"object"}`,
		},
		{
			"names of its own draft and definitions go", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"y":{"type":"string"}},"type":"object","properties":{"a":{"$ref":"#/$defs/y","minLength":1}}}`,
			`{"$defs":{"d1":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d1","minLength":1}},"type":"object"}`,
		},
		{
			"what is named like a keyword stays", `{"type":"object","properties":{"definitions":{"type":"int"},"$ref":{"type":"bool"},"id":{"type":"string"}}}`,
			`{"properties":{"$ref":{"type":"boolean"},"definitions":{"type":"integer"},"id":{"type":"string"}},"type":"object"}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			parsed, findings := Parse([]byte(`{"input":` + c.schema + `,"output":{"type":"object"},"definitions":{"x":{"type":"string","format":"file_path"}}}`))
			if parsed == nil {
				t.Fatal(findings)
			}
			if got := string(parsed.Input.Plain()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// What is written plainly is a schema that we take, and it takes what the other took.
func TestPlainCompilesAgain(t *testing.T) {
	files, err := filepath.Glob("testdata/taken/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			schema, _ := Compile(raw)
			if schema == nil {
				t.Skip("it isn't a schema of its own")
			}
			again, findings := Compile(schema.Plain())
			if again == nil {
				t.Fatalf("%v\n%s", findings, schema.Plain())
			}
			if string(again.Plain()) != string(schema.Plain()) {
				t.Errorf("got  %s\nwant %s", again.Plain(), schema.Plain())
			}
		})
	}
}
