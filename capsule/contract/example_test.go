package contract

import (
	"fmt"
	"strings"
	"testing"
)

func TestExamplesOfWhatSaysLittleOrMuch(t *testing.T) {
	inner := `{"type":"int"}`
	nest := func(levels int) string {
		schema := inner
		for range levels {
			schema = `{"type":"object","required":["a"],"properties":{"a":` + schema + `}}`
		}
		return schema
	}
	many := func(more string) string { return `{"required":["a"],"properties":{"a":{` + more + `}}}` }
	for name, c := range map[string]struct {
		schema, want string
		ok           bool
	}{
		"an object without its type":          {many(``), `{"a":"text"}`, true},
		"objects three deep":                  {nest(3), `{"a":{"a":{"a":1}}}`, true},
		"not objects four deep":               {nest(4), `{"a":{"a":{"a":{}}}}`, false},
		"a list in a list":                    {many(`"type":"list","minItems":1,"items":{"type":"list","minItems":1,"items":{"type":"bool"}}`), `{"a":[[true]]}`, true},
		"lists deeper than it looks":          {many(`"type":"list","minItems":1,"items":{"type":"list","minItems":1,"items":{"type":"list","minItems":1}}`), `{"a":[[[]]]}`, false},
		"as many items as are bearable":       {many(`"type":"list","minItems":10,"items":{"type":"null"}`), `{"a":[` + strings.TrimSuffix(strings.Repeat("null,", 10), ",") + `]}`, true},
		"no list of very many":                {many(`"type":"list","minItems":11,"items":{"type":"null"}`), `{"a":[` + strings.TrimSuffix(strings.Repeat("null,", 10), ",") + `]}`, false},
		"a text just long enough":             {many(`"type":"string","minLength":4`), `{"a":"text"}`, true},
		"a text a little longer":              {many(`"type":"string","minLength":5`), `{"a":"text text"}`, true},
		"a default before all else":           {many(`"default":"d","examples":["x"],"enum":["d","e"]`), `{"a":"d"}`, true},
		"an example before the choices":       {many(`"examples":["e"],"enum":["d","e"]`), `{"a":"e"}`, true},
		"a default that breaks its schema":    {many(`"type":"int","default":"d"`), `{"a":"d"}`, false},
		"of several types, the text":          {many(`"type":["null","int","string"]`), `{"a":"text"}`, true},
		"of several types, the object":        {many(`"type":["string","object"]`), `{"a":{}}`, true},
		"only null":                           {many(`"type":"null"`), `{"a":null}`, true},
		"a number below a maximum":            {many(`"type":"float","maximum":0.5`), `{"a":0.5}`, true},
		"a number far from its maximum":       {many(`"type":"int","maximum":1`), `{"a":1}`, true},
		"above a fraction, as far as it goes": {many(`"type":"float","exclusiveMinimum":1.5`), `{"a":1}`, false},
		"a minimum, though both are there":    {many(`"type":"int","minimum":7,"exclusiveMinimum":5,"maximum":9`), `{"a":7}`, true},
		"what an alternative asks for":        {many(`"anyOf":[{"type":"int","minimum":3},{"type":"null"}]`), `{"a":3}`, true},
		"what all of several ask for":         {`{"allOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"int"},"b":{"type":"bool"}}}`, `{"a":1,"b":true}`, true},
		"not what one of several asks for":    {`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`, `{}`, false},
		"no list of files":                    {`{"required":["a","b"],"properties":{"a":{"type":"list","items":` + file + `},"b":{"type":"int"}}}`, `{"b":1}`, false},
		"a field that nothing is said of":     {`{"required":["a"]}`, `{"a":"text"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := compiled(t, c.schema).Example()
			if ok != c.ok || string(got.JSON()) != c.want {
				t.Errorf("%s, %v", got.JSON(), ok)
			}
		})
	}
}

func TestExamplesOfManyFieldsAreBounded(t *testing.T) {
	var names, fields []string
	for i := range maxFields + 10 {
		names, fields = append(names, fmt.Sprintf(`"f%04d"`, i)), append(fields, fmt.Sprintf(`"f%04d":{"type":"int"}`, i))
	}
	schema := func(n int) *Schema {
		return compiled(t, `{"required":[`+strings.Join(names[:n], ",")+`],"properties":{`+strings.Join(fields[:n], ",")+`}}`)
	}
	if got, ok := schema(maxFields - 1).Example(); !ok || strings.Count(string(got.JSON()), ":1") != maxFields-1 {
		t.Errorf("%v: %.60s", ok, got.JSON())
	}
	if got, ok := schema(maxFields).Example(); ok {
		t.Errorf("%.60s", got.JSON())
	}
}
