package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCustomaryFiles(t *testing.T) {
	p, err := Decode([]byte(`{"file":"/io/input/a","files":["b/./c",7,"",null,"/etc/x","../d","e\u0000"],"deep":{"file":"no"},"other":"no"}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	type ref struct{ Pointer, Name string }
	var got []ref
	refs := CustomaryFiles(p, StageInput)
	for _, r := range refs {
		if (r.Err != nil) != (r.Name == "") {
			t.Errorf("%+v", r)
		}
		got = append(got, ref{r.Pointer, r.Name})
	}
	want := []ref{{"/file", "a"}, {"/files/0", "b/c"}, {"/files/4", ""}, {"/files/5", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	clean, err := p.WithNames(refs[:2])
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := clean.Get("files"); files.([]any)[0] != "b/c" {
		t.Error(files)
	}
	if text, _ := clean.Get("file"); text != "a" {
		t.Error(text)
	}
}

func TestWhichFilesMakeAList(t *testing.T) {
	c, findings := Parse([]byte(`{"input":{"type":"object","properties":{
		"one":{"type":"string"},"many":{"type":"array"},"any":{}}},"output":{"type":"object"}}`))
	lists, _ := Parse([]byte(`{"input":{"type":"object","additionalProperties":false,"properties":{"file":{"type":"list"}}},"output":{"type":"object"}}`))
	if c == nil || lists == nil {
		t.Fatal(findings)
	}
	for field, want := range map[string]bool{"one": false, "many": true, "any": true, "file": false, "files": true} {
		if got := c.Input.IsList(field); got != want {
			t.Errorf("%s: %v", field, got)
		}
	}
	for field, want := range map[string]bool{"file": true, "files": true, "other": false} {
		if got := lists.Input.IsList(field); got != want {
			t.Errorf("closed, %s: %v", field, got)
		}
	}
}
