package contract

import (
	"regexp/syntax"
	"time"

	"github.com/xeipuuv/gojsonschema"
)

// formatBytes returns how many bytes of a string the check of a format takes for one step.
func formatBytes(name string) int {
	if name == "regex" {
		return 8 // the tree of an expression is a hundred times its text
	}
	return 128
}

// expression checks the format "regex". gojsonschema's own check compiles the expression:
// a short text can repeat a long one a thousand times, and compiling has no bound.
type expression struct{}

// IsFormat implements gojsonschema.FormatChecker.
func (expression) IsFormat(input any) bool {
	text, _ := input.(string)
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}

// moment checks the format "date-time". gojsonschema's own check takes a date or a time alone as
// well.
type moment struct{}

// IsFormat implements gojsonschema.FormatChecker.
func (moment) IsFormat(input any) bool {
	text, _ := input.(string)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// texts checks texts alone, which "format" is about: gojsonschema's own checks refuse numbers.
type texts struct{ gojsonschema.FormatChecker }

// IsFormat implements gojsonschema.FormatChecker.
func (c texts) IsFormat(input any) bool {
	_, is := input.(string)
	return !is || c.FormatChecker.IsFormat(input)
}

// The formats are global in gojsonschema. Only this package imports it.
func init() {
	for name, check := range map[string]gojsonschema.FormatChecker{
		"date": gojsonschema.DateFormatChecker{}, "time": gojsonschema.TimeFormatChecker{}, "date-time": moment{},
		"email": gojsonschema.EmailFormatChecker{}, "idn-email": gojsonschema.EmailFormatChecker{},
		"hostname": gojsonschema.HostnameFormatChecker{},
		"ipv4":     gojsonschema.IPV4FormatChecker{}, "ipv6": gojsonschema.IPV6FormatChecker{},
		"uuid": gojsonschema.UUIDFormatChecker{},
		"uri":  gojsonschema.URIFormatChecker{}, "uri-reference": gojsonschema.URIReferenceFormatChecker{},
		"uri-template": gojsonschema.URITemplateFormatChecker{},
		"iri":          gojsonschema.URIFormatChecker{}, "iri-reference": gojsonschema.URIReferenceFormatChecker{},
		"regex":                 expression{},
		"json-pointer":          gojsonschema.JSONPointerFormatChecker{},
		"relative-json-pointer": gojsonschema.RelativeJSONPointerFormatChecker{},
	} {
		gojsonschema.FormatCheckers.Add(name, texts{check})
	}
}
