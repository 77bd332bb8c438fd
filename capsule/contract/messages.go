package contract

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/api/fault"
)

// redundant are errors that only say that another one stands beside them.
var redundant = map[string]bool{"number_all_of": true, "condition_then": true, "condition_else": true}

// hints say how to mend what isn't plain.
var hints = map[string]string{
	"additional_property_not_allowed": "remove it, or check its spelling against the contract",
	"invalid_property_name":           "what else is said of this place is about the name",
	"number_any_of":                   "what else is said of this place is how the closest alternative differs",
}

// plain are the sentences that need no detail.
var plain = map[string]string{
	"number_any_of":             "matches none of the alternatives (anyOf)",
	"number_one_of":             "must match exactly one of the alternatives (oneOf)",
	"number_not":                "is of a form that the contract excludes",
	"false":                     "is not allowed by the contract",
	"contains":                  "no item is of the form that one must have",
	"array_no_additional_items": "has more items than the contract describes",
	"internal":                  "could not be compared with the allowed values",
}

// detailed are the sentences with details of the contract. They never show a value.
var detailed = map[string]struct{ format, detail string }{
	"missing_dependency":   {"field %s is required beside another field that is there", "dependency"},
	"array_min_items":      {"has too few items: at least %s", "min"},
	"array_max_items":      {"has too many items: at most %s", "max"},
	"array_min_properties": {"has too few fields: at least %s", "min"},
	"array_max_properties": {"has too many fields: at most %s", "max"},
	"string_gte":           {"is too short: at least %s characters", "min"},
	"string_lte":           {"is too long: at most %s characters", "max"},
	"multiple_of":          {"must be a multiple of %s", "multiple"},
	"number_gte":           {"must be at least %s", "min"},
	"number_gt":            {"must be greater than %s", "min"},
	"number_lte":           {"must be at most %s", "max"},
	"number_lt":            {"must be less than %s", "max"},
	"pattern":              {"does not match the pattern %s", "pattern"},
	"enum":                 {"is not one of the allowed values: %s", "allowed"},
	"const":                {"is not the allowed value: %s", "allowed"},
}

// formats are examples for the people who meet a format.
var formats = map[string]string{
	"date": "2006-01-02", "time": "15:04:05Z", "date-time": "2006-01-02T15:04:05Z", "email": "name@example.com",
	"duration": "P1DT12H",
	"uri":      "https://example.com/path", "uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "ipv4": "192.0.2.1",
	"ipv6":     "2001:db8::1",
	"hostname": "example.com",
}

// explain says in plain words what is wrong and, where it isn't plain, how to mend it. The
// names of fields that the contract doesn't have are marked as foreign.
func explain(e gojsonschema.ResultError) fault.Finding {
	kind, details := e.Type(), e.Details()
	name := quote(fmt.Sprint(details["property"]))
	f := fault.Finding{Hint: hints[kind]}
	switch kind {
	case "required":
		f.Message = missingText(name)
	case "additional_property_not_allowed":
		f.Message, f.Foreign = fault.Foreignf("unexpected field %s", fault.Foreign(name))
	case "invalid_property_name":
		f.Message, f.Foreign = fault.Foreignf("the name of field %s is not allowed", fault.Foreign(name))
	case "invalid_type":
		types := strings.Trim(fmt.Sprint(details["expected"]), "[]") // of gojsonschema's "[string,null]"
		f.Message = fmt.Sprintf("expected %s, got %s", strings.ReplaceAll(types, ",", " or "), details["given"])
	case "unique":
		f.Message = fmt.Sprintf("items %v and %v are equal, but all must differ", details["i"], details["j"])
	case "format":
		f.Message, f.Hint = explainFormat(fmt.Sprint(details["format"]))
	default:
		f.Message = sentence(kind, details)
	}
	return f
}

// missingText is the message about a field that isn't there, by its quoted name.
func missingText(name string) string { return fmt.Sprintf(missing+" %s is missing", name) }

func sentence(kind string, details gojsonschema.ErrorDetails) string {
	if d, ok := detailed[kind]; ok {
		return fmt.Sprintf(d.format, show(fmt.Sprint(details[d.detail])))
	}
	if text, ok := plain[kind]; ok {
		return text
	}
	return "breaks the contract (" + kind + ")"
}

func explainFormat(format string) (message, hint string) {
	if example, ok := formats[format]; ok {
		hint = "write it like " + example
	}
	return fmt.Sprintf("is not a valid %s", show(format)), hint
}

// nearest returns the candidate that differs from s by no more than two letters
// and two fifths of its length, or "". Words that can't be near are not compared.
func nearest(s string, candidates []string) string {
	const most = 2
	best, distance := "", most+1
	for _, c := range candidates {
		if len(s) > len(c)+most || len(c) > len(s)+most {
			continue
		}
		if d := fault.Distance(s, c); d < distance && 5*d <= 2*len(c) {
			best, distance = c, d
		}
	}
	return best
}

// quote shows a name: bounded, and with nothing in it that a terminal would obey.
func quote(s string) string { return strconv.Quote(fault.Clip(s, maxShownBytes)) }

// show is quote without the quotes, for lists and expressions.
func show(s string) string {
	var b strings.Builder
	for _, c := range fault.Clip(s, maxShownBytes) {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return b.String()
}
