package contract

import (
	"strings"
	"testing"
)

func TestADefaultThatBreaksItsSchemaIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct{ schema, warned string }{
		"another type":          {`{"v":{"type":"int","default":"x"}}`, "/input/properties/v/default|expected integer, got string"},
		"a date that is none":   {`{"v":{"type":"string","format":"date","default":"2024-02-30"}}`, "/input/properties/v/default|is not a valid date"},
		"none of the values":    {`{"v":{"enum":[true,2],"default":1}}`, "/input/properties/v/default|is not one of"},
		"another pattern":       {`{"v":{"type":"string","pattern":"^\\p{L}+\\z","default":"a1"}}`, "/input/properties/v/default|does not match"},
		"within a default":      {`{"v":{"type":"list","items":{"type":"int"},"default":[1,"x"]}}`, "/input/properties/v/default|expected integer"},
		"within an item":        {`{"v":{"type":"list","items":{"properties":{"w":{"type":"int","default":1.5}}}}}`, "/input/properties/v/items/properties/w/default|expected integer"},
		"beside a reference":    {`{"v":{"$ref":"#/definitions/d","default":{"n":"x"}}}`, "/input/properties/v/default|expected integer"},
		"nothing":               {`{"v":{"type":"int","default":null}}`, ""},
		"what it should be":     {`{"v":{"$ref":"#/definitions/d","default":{"n":1}},"w":{"type":"string","format":"file_path","default":"a.txt"}}`, ""},
		"fields with their own": {`{"v":{"type":"object","required":["n"],"properties":{"n":{"type":"int","default":1}},"default":{}}}`, ""},
		"data that looks so":    {`{"v":{"const":{"type":"int","default":"x"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			contract, findings := Parse([]byte(`{"definitions":{"d":{"type":"object","properties":{"n":{"type":"int"}}}},
				"input":{"properties":` + c.schema + `},"output":{}}`))
			if contract == nil || (c.warned == "") != (len(findings) == 0) {
				t.Fatal(findings)
			}
			at, says, _ := strings.Cut(c.warned, "|")
			for _, f := range findings {
				if !f.Warning || f.Pointer != at || !strings.Contains(f.Message, "the default breaks its own schema: ") || !strings.Contains(f.Message, says) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
