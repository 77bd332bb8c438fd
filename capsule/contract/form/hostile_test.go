package form_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/testing/contracttest"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func properties(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"f%d":{"type":"int"}`, i)
	}
	return strings.Join(list, ",")
}

func TestWhatIsPostedIsBounded(t *testing.T) {
	t.Parallel()
	wide := compiled(t, `{"properties":{"l":{"type":"list","items":{"properties":{`+properties(450)+`}}}}}`).Form()
	rows, blank := map[string][]string{}, map[string][]string{}
	for i := range 9000 {
		rows[fmt.Sprintf("/l/%d/f%d", i%1000, i%450)] = []string{"1"}
		blank[fmt.Sprintf("/l/%d/f%d", i%1000, i%450)] = []string{""}
	}
	strange, deep := map[string][]string{}, strings.Repeat("/l/0", 8)+"/x"
	for i := range 10_000 {
		strange[fmt.Sprintf("/x%d", i)] = []string{"1"}
	}
	for name, c := range map[string]struct {
		p    form.Posted
		want []string // the first findings
		all  int
	}{
		"many values":             {form.Posted{Values: map[string][]string{"/l": make([]string, 10_001)}}, []string{"|the form has more than 10000 values"}, 1},
		"many files":              {form.Posted{Files: map[string][]string{"/l": make([]string, 10_001)}}, []string{"|the form has more than 10000 values"}, 1},
		"many values of the page": {form.Posted{Values: map[string][]string{"x": make([]string, 10_001)}}, nil, 0},
		"rows of many fields":     {form.Posted{Values: rows}, []string{"/l|has more items than a form can hold"}, 1},
		"rows that are empty":     {form.Posted{Values: blank}, []string{"/l|has more items than a form can hold"}, 1},
		"names that are unknown":  {form.Posted{Values: strange}, []string{"/x0|the form doesn't take this value here"}, 20},
		"names that are deep":     {form.Posted{Values: map[string][]string{strings.Repeat("/", 100_000): {"x"}, deep: {"x"}}}, []string{deep + "|the form doesn't take this value here"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			control, input, found := form.Read(wide, c.p)
			count := 0
			for range control.All() {
				count++
			}
			if took := time.Since(start); took > 10*time.Second || count > 5000 || !json.Valid(input) || len(found) != c.all {
				t.Errorf("%d controls and %d findings after %v: %.100s", count, len(found), took, input)
			}
			if diff := cmp.Diff(c.want, shortly(found[:min(len(found), 1)])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// filledIn takes out of a value what a form fills in: required fields that the input lacks, and where an empty
// control gives null, an empty list or an object of such.
func filledIn(f *form.Field, value, input any) any {
	switch value := value.(type) {
	case map[string]any:
		before, _ := input.(map[string]any)
		if f.Kind != form.Object || before == nil {
			return value
		}
		for _, part := range f.Fields {
			if old, is := before[part.Key]; is {
				value[part.Key] = filledIn(part, value[part.Key], old)
			} else if part.Required && empty(value[part.Key]) {
				delete(value, part.Key)
			}
		}
	case []any:
		before, _ := input.([]any)
		if f.Kind != form.List || len(before) != len(value) {
			return value
		}
		for i := range value {
			value[i] = filledIn(f.Item, value[i], before[i])
		}
	}
	return value
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, part := range value {
			if !empty(part) {
				return false
			}
		}
		return true
	}
	return false
}

// nearest is the control at which a finding has to stand: that of its value, or the nearest around it.
func nearest(c *form.Control, pointer string) (at *form.Control) {
	for each := range c.All() {
		if pointer == each.Pointer || strings.HasPrefix(pointer, each.Pointer+"/") {
			if at == nil || len(each.Pointer) > len(at.Pointer) {
				at = each
			}
		}
	}
	return at
}

// stands fails the test unless each finding stands at its control, and the first one is returned.
func stands(t *testing.T, c *form.Control, found []fault.Finding) {
	t.Helper()
	first := contract.Place(c, found)
	for _, f := range found {
		at := nearest(c, f.Pointer)
		for _, part := range at.Parts {
			if f.Message == fmt.Sprintf("required field %q is missing", part.Key) {
				at = part
				break
			}
		}
		if !slices.Contains(at.Findings, f) {
			t.Errorf("%s doesn't stand at %q", f, at.Pointer)
		}
	}
	for each := range c.All() {
		if len(each.Findings) > 0 && each != first {
			t.Errorf("the first isn't %q", each.Pointer)
		}
		if len(each.Findings) > 0 {
			break
		}
	}
}

// Ten thousand inputs of five hundred contracts come back as they were, and are judged as they were.
func TestAnInputComesBackAsItWas(t *testing.T) {
	t.Parallel()
	kept, broken := 0, 0
	for seed := range uint64(500) {
		m := contracttest.New(seed)
		m.Files = true
		described := m.Contract()
		raw, err := strictjson.Encode(described)
		if err != nil {
			t.Fatal(err)
		}
		s, findings := contract.Compile(raw)
		if s == nil {
			t.Fatalf("seed %d: %s: %v", seed, raw, findings)
		}
		fields := s.Form()
		for range 20 {
			input, err := contract.NewPayload(m.Input(described))
			if err != nil {
				t.Fatal(err)
			}
			c, read := again(t, fields, string(input.JSON()))
			got, err := contract.Decode([]byte(read), 0)
			if err != nil {
				t.Fatal(err)
			}
			before, found := s.Validate(input), s.Validate(got)
			if stands(t, c, found); len(before) == 0 {
				kept++
			} else {
				broken++
			}
			if same := reflect.DeepEqual(input.Values(), filledIn(fields, got.Values(), input.Values())); !same || t.Failed() {
				t.Fatalf("seed %d of %s: %s became %s", seed, raw, input.JSON(), read)
			}
		}
	}
	if kept < 2000 || broken < 2000 {
		t.Errorf("%d inputs kept their contracts, %d didn't: that tells little", kept, broken)
	}
}

// whatever is posted, the input is JSON, and comes back of its own form.
func FuzzRead(f *testing.F) {
	forms := []*form.Field{compiled(f, sample).Form(), compiled(f, `{"type":"dict"}`).Form(), compiled(f, `{"required":["l"],"properties":{"l":{"type":["null","list"],"items":{"type":"list","items":{"type":["int","null"]}}}}}`).Form()}
	for _, seed := range []string{
		"/text=a%0D%0Ab&/n=1e2&/b=true&/e=%221%22", "/l/0=a&/l/3=b&/rows/2/k=x&/rows/2/v/0=1&%23/rows/1=%7B%7D", "%23=%7B%22a%22%3A1%7D&%23/o=%5B%5D&/o/y~1z=2",
		"/l/0/0=1&/l/0=2&%23/l=%5B%5B1%5D%5D&/l=3", "%23/l=null&/es=%22a%22&/es=%22b%22", "/%FF=1&%23/~2~=1&//=2", "/f=@a&/fs=b&/d=2026-02-30",
	} {
		f.Add(seed, seed)
	}
	fuzzbound.Run(f, func(t *testing.T, query, files string) {
		values, _ := url.ParseQuery(query)
		names, _ := url.ParseQuery(files)
		for _, each := range forms {
			c, input, found := form.Read(each, form.Posted{Values: values, Files: names})
			contract.Place(c, found)
			if !json.Valid(input) {
				t.Fatalf("it isn't JSON: %s", input)
			}
			if _, err := contract.Decode(input, 0); err != nil || len(found) > 0 {
				continue
			}
			if _, read := again(t, each, string(input)); !sameJSON(t, string(input), read) {
				t.Fatalf("%s became %s", input, read)
			}
		}
	})
}

// An input that keeps its contract comes back, whatever the contract.
func FuzzFill(f *testing.F) {
	for _, seed := range [][2]string{
		{sample, `{"text":"a","rows":[{"k":"","v":[1e2]},{}],"o":{"z":null},"e":1.0}`},
		{`{"properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{"b":[]}}}`},
		{`{"required":["a","b"],"properties":{"a":{"type":["null","string"]},"b":{"anyOf":[{"type":"null"},{"properties":{"c":{"type":"int"}}}]}}}`, `{"a":null,"b":{}}`},
		{`{"properties":{"a":{"type":"list","items":{"oneOf":[{"const":1},{"const":"b"}]}}}}`, `{"a":[1,"b"],"":1}`},
	} {
		f.Add(seed[0], seed[1])
	}
	fuzzbound.Run(f, func(t *testing.T, schema, input string) {
		s, _ := contract.Compile([]byte(schema))
		p, err := contract.Decode([]byte(input), 1<<14)
		if s == nil || err != nil || len(s.Validate(p)) > 0 {
			return
		}
		if _, read := again(t, s.Form(), input); !sameJSON(t, input, read) {
			t.Fatalf("%s became %s", input, read)
		}
	})
}
