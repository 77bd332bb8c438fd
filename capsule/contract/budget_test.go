package contract

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepsOf is what a payload costs against a schema.
func stepsOf(t *testing.T, schema, raw string) int {
	t.Helper()
	steps, _ := walk(compiled(t, schema).root, payload(t, raw).value(), nil)
	return steps
}

// What the library would do more often has to cost more.
func TestWhatTheLibraryDoesCosts(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	list := func(element string, n int) string {
		return `{"v":[` + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + `]}`
	}
	for _, c := range []struct {
		name, schema string
		cheap, dear  string
		dearer       int // how many times the cheap one, at least
	}{
		{
			name:   "items that are looked at",
			schema: `{"properties":{"v":{"items":{"type":"int"}}}}`,
			cheap:  list("1", 10),
			dear:   list("1", 1000),
			dearer: 50,
		},
		{
			name:   "a long text against an expression",
			schema: `{"properties":{"v":{"pattern":"(a|b|c)*d"}}}`,
			cheap:  `{"v":"x"}`,
			dear:   `{"v":"` + long + `"}`,
			dearer: 20,
		},
		{
			name:   "a long text that is compared",
			schema: `{"properties":{"v":{"const":1}}}`,
			cheap:  `{"v":"x"}`,
			dear:   `{"v":"` + long + `"}`,
			dearer: 5,
		},
		{
			name:   "a large list that must be unique",
			schema: `{"properties":{"v":{"uniqueItems":true}}}`,
			cheap:  list(`{"a":1}`, 1),
			dear:   list(`{"a":1}`, 500),
			dearer: 50,
		},
		{
			name:   "names against expressions",
			schema: `{"properties":{"v":{"patternProperties":{"^a":{},"^b":{},"^c":{}}}}}`,
			cheap:  `{"v":{}}`,
			dear:   `{"v":{` + fields(300) + `}}`,
			dearer: 50,
		},
		{
			name:   "names that fields depend on",
			schema: `{"properties":{"v":{"dependencies":{"f1":["` + strings.Join(names(300), `","`) + `"]}}}}`,
			cheap:  `{"v":{}}`,
			dear:   `{"v":{"f1":1}}`,
			dearer: 50,
		},
		{
			name:   "required names that are not there",
			schema: `{"properties":{"v":{"items":{"required":["` + strings.Join(names(100), `","`) + `"]}}}}`,
			cheap:  list("{}", 1),
			dear:   list("{}", 100),
			dearer: 20,
		},
		{
			name:   "alternatives",
			schema: `{"properties":{"v":{"items":{"anyOf":[{"type":"int"},{"type":"string"},{"allOf":[{},{},{}]}]}}}}`,
			cheap:  list("1", 1),
			dear:   list("1", 100),
			dearer: 20,
		},
		{
			name:   "what stands under not and if",
			schema: `{"properties":{"v":{"not":{"items":{"type":"int"}},"if":{"items":{"type":"int"}},"then":{}}}}`,
			cheap:  list("1", 1),
			dear:   list("1", 100),
			dearer: 10,
		},
		{
			name:   "a long expression",
			schema: expressions,
			cheap:  `{"v":["x"]}`,
			dear:   `{"v":["` + long + `"]}`,
			dearer: 100,
		},
		{
			name:   "a long text of another format",
			schema: `{"properties":{"v":{"format":"email"}}}`,
			cheap:  `{"v":"x"}`,
			dear:   `{"v":"` + long + `"}`,
			dearer: 20,
		},
		{
			name:   "names of fields",
			schema: `{"properties":{"v":{"propertyNames":{"pattern":"^f"}}}}`,
			cheap:  `{"v":{}}`,
			dear:   `{"v":{` + fields(300) + `}}`,
			dearer: 50,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cheap, dear := stepsOf(t, c.schema, c.cheap), stepsOf(t, c.schema, c.dear)
			if dear < c.dearer*cheap {
				t.Errorf("%d steps against %d", dear, cheap)
			}
		})
	}
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("f%d", i+1)
	}
	return list
}

func fields(n int) string {
	return `"` + strings.Join(names(n), `":1,"`) + `":1`
}

func TestALongPathCostsAtEachStep(t *testing.T) {
	const schema = `{"additionalProperties":{"additionalProperties":{"items":{"type":"int"}}}}`
	shape := func(key string) string {
		return `{"` + key + `":{"` + key + `":[` + strings.TrimSuffix(strings.Repeat("1,", 100), ",") + `]}}`
	}
	short, long := stepsOf(t, schema, shape("k")), stepsOf(t, schema, shape(strings.Repeat("k", 4000)))
	if long < 20*short {
		t.Errorf("%d steps with long names, %d with short ones", long, short)
	}
}

func TestWhatIsUntouchedCostsNothing(t *testing.T) {
	large := `{"v":[` + strings.TrimSuffix(strings.Repeat(`{"a":[1,2,3]},`, 10_000), ",") + `]}`
	for name, schema := range map[string]string{
		"a schema that says nothing": `{}`,
		"one that says true":         `{"properties":{"v":true}}`,
		"another type":               `{"properties":{"v":{"type":"string","items":{"type":"int"}}}}`,
		"other fields":               `{"properties":{"w":{"items":{"type":"int"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if steps := stepsOf(t, schema, large); steps > 20 {
				t.Errorf("%d steps", steps)
			}
		})
	}
}

func TestTheBudgetEndsAWalk(t *testing.T) {
	s := compiled(t, `{"properties":{"v":{"items":{"allOf":[{},{},{},{}]}}}}`)
	p := payload(t, `{"v":[`+strings.TrimSuffix(strings.Repeat("1,", 400_000), ",")+`]}`)
	visited := 0
	steps, ok := walk(s.root, p.value(), func(*node, any, *place) { visited++ })
	if ok || steps <= maxSteps || steps > maxSteps+10_000 || visited > maxSteps+1 {
		t.Errorf("%d steps, %d visits, within the budget: %v", steps, visited, ok)
	}
}

func TestALargePayloadOfAPlainContractIsWithinTheBudget(t *testing.T) {
	contract, _ := Parse([]byte(typical))
	p := payload(t, string(megabyte()))
	start := processorTime()
	found := contract.Input.Validate(p)
	if took := processorTime() - start; len(found) > 0 || took > 5*time.Second {
		t.Errorf("%v after %v", found, took)
	}
}

func TestContractsAtTheirLimitsAreTaken(t *testing.T) {
	chainOf := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
		}
		return fmt.Sprintf(`{"definitions":{%s"d%d":{}},"input":{"$ref":"#/definitions/d0"},"output":{}}`, b.String(), n)
	}
	for name, c := range map[string]struct {
		raw   string
		taken bool
	}{
		"references in a row":          {chainOf(maxInPlace - 2), true},
		"one reference too many":       {chainOf(maxInPlace - 1), false},
		"alternatives that double":     {chain(11, `{"anyOf":[%s,%s]}`), false},
		"some alternatives":            {chain(8, `{"anyOf":[%s,%s]}`), true},
		"many schemas":                 {object(`"a":{"items":[` + strings.TrimSuffix(strings.Repeat(`{},`, maxSubschemas-4), ",") + `]}`), true},
		"a schema too many":            {object(`"a":{"items":[` + strings.TrimSuffix(strings.Repeat(`{},`, maxSubschemas-2), ",") + `]}`), false},
		"an expression of many parts":  {object(`"a":{"pattern":"a{1000}"}`), true},
		"expressions within one":       {object(`"a":{"pattern":"` + strings.Repeat("(a{1000})", 21) + `"}`), false},
		"as much text as there may be": {object(`"a":{"description":"` + strings.Repeat("x", maxContractBytes-200) + `"}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			contract, found := within2s(t, c.raw)
			if (contract != nil) != c.taken {
				t.Errorf("taken: %v, %v", contract != nil, found)
			}
		})
	}
}

func TestARecursiveContractIsBoundedByThePayload(t *testing.T) {
	s := compiled(t, `{"$ref":"#/definitions/tree","definitions":{"tree":{"properties":{"l":{"$ref":"#/definitions/tree"},"r":{"$ref":"#/definitions/tree"}},"required":["n"]}}}`)
	tree := `{"n":1}`
	for range 12 {
		tree = `{"n":1,"l":` + tree + `,"r":` + tree + `}`
	}
	if found := s.Validate(payload(t, tree)); len(found) > 0 {
		t.Errorf("%v", found[0])
	}
}

// bombs are strings of the format regex that take a tenth of a second and 40 MB to compile, each.
func bombs(n int) string {
	bomb := `"(` + strings.Repeat("[a-c]", 100) + `){1000}",`
	return `{"v":[` + strings.TrimSuffix(strings.Repeat(bomb, n), ",") + `]}`
}

const expressions = `{"properties":{"v":{"items":{"type":"string","format":"regex"}}}}`

func TestAnExpressionInAPayloadIsNotCompiled(t *testing.T) {
	s, p := compiled(t, expressions), payload(t, bombs(40))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := s.Validate(p)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 || len(found) > 0 {
		t.Errorf("40 expressions took %d MiB and gave %v", took>>20, found)
	}
	if found := s.Validate(payload(t, `{"v":["(a","a**","[z-a]","a{2,1}","ok"]}`)); len(found) != 4 {
		t.Errorf("four of five aren't expressions: %v", found)
	}
}

func TestAHeavyCheckEndsWithItsContext(t *testing.T) {
	s := compiled(t, `{"properties":{"v":{"items":{"type":"string"}}}}`)
	p := payload(t, `{"v":[`+strings.TrimSuffix(strings.Repeat("1,", heavySteps), ",")+`]}`)
	if err := heavy.Acquire(t.Context(), 1); err != nil { // another one is under way
		t.Fatal(err)
	}
	why := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if found, err := s.ValidateContext(ctx, p); !errors.Is(err, why) || found != nil {
		t.Errorf("while another one is under way: %d findings, %v", len(found), err)
	}
	heavy.Release(1)
	if found, err := s.ValidateContext(t.Context(), p); err != nil || len(found) == 0 {
		t.Errorf("%d findings, %v", len(found), err)
	}
}

// processorTime is what this process has used of the processors, which says more on a busy
// machine than the clock does.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestASmallCheckDoesNotWaitForALargeOne(t *testing.T) {
	s := compiled(t, `{"properties":{"v":{"items":{"type":"string"}}}}`)
	if err := heavy.Acquire(t.Context(), 1); err != nil { // a large one is under way
		t.Fatal(err)
	}
	defer heavy.Release(1)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, n := range map[string]int{"one item": 1, "as many as are small": heavySteps/2 - 10} {
		p := payload(t, `{"v":[`+strings.TrimSuffix(strings.Repeat("1,", n), ",")+`]}`)
		found, err := s.ValidateContext(over, p)
		if err != nil || len(found) != min(n, MaxFindings+1) {
			t.Errorf("%s: %d findings, %v", name, len(found), err)
		}
	}
}
