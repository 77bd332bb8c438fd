package contract

import (
	"strings"
	"testing"
)

func TestEachFormatHoldsItsTextsAndNoOthers(t *testing.T) {
	for format, c := range map[string]struct{ holds, breaks []string }{
		"time":         {[]string{"15:04:05Z", "15:04:05.25Z", "15:04:05+02:00"}, []string{"24:00:00Z", "3pm", ""}},
		"date-time":    {[]string{"2024-12-31T23:59:59-11:30"}, []string{"2024-12-31", "23:59:59", "23:59:59Z", "2024-12-31T23:59:59", "2024-12-31 23:59", "2024-13-01T00:00:00Z", ""}},
		"email":        {[]string{"name@example.com", "a+b@example.com"}, []string{"name", "@example.com", "name@"}},
		"hostname":     {[]string{"example.com", "a", "a-b.c"}, []string{"-a.com", "a..b", "a b", strings.Repeat("a", 64) + ".com"}},
		"ipv4":         {[]string{"0.0.0.0", "255.255.255.255"}, []string{"1.2.3", "1.2.3.4.5", "::1"}},
		"ipv6":         {[]string{"::", "::1", "2001:db8::1"}, []string{"1.2.3.4", "2001:db8", ":::"}},
		"uri":          {[]string{"https://example.com/a?b#c", "urn:a:b", "mailto:a@example.com"}, []string{"/a", "example.com", "https://a b"}},
		"regex":        {[]string{"^a+$", "", "(a|b)"}, []string{"(", "a**", "(?=a)", "[z-a]"}},
		"json-pointer": {[]string{"", "/a/0", "/a~0b~1c"}, []string{"a", "/a~2"}},
	} {
		t.Run(format, func(t *testing.T) {
			s := compiled(t, `{"properties":{"v":{"type":["string","integer"],"format":"`+format+`"}}}`)
			for _, text := range c.holds {
				if found := s.Validate(payload(t, quotedIn(text))); len(found) > 0 {
					t.Errorf("%q is refused: %v", text, found)
				}
			}
			for _, text := range c.breaks {
				wantFindings(t, s.Validate(payload(t, quotedIn(text))), []string{"/v|is not a valid " + format + "|" + hintOf(format)})
			}
		})
	}
}

// quotedIn is a payload with a text that needs no escapes.
func quotedIn(text string) string { return `{"v":"` + text + `"}` }

// hintOf is how the hint for a format begins; "" where it has none.
func hintOf(format string) string {
	if formats[format] == "" {
		return ""
	}
	return "write it like " + formats[format]
}

func TestTheExampleOfAFormatIsOfIt(t *testing.T) {
	for format, example := range formats {
		s := compiled(t, `{"properties":{"v":{"format":"`+format+`"}}}`)
		text, _, _ := strings.Cut(example, " (") // what follows is said of it
		if found := s.Validate(payload(t, quotedIn(text))); len(found) > 0 {
			t.Errorf("%s: %v", format, found)
		}
	}
}

func TestAFormatIsAboutTexts(t *testing.T) {
	for _, format := range strings.Fields("date time date-time email hostname ipv4 ipv6 uri uri-reference uri-template uuid regex json-pointer relative-json-pointer idn-email iri iri-reference") {
		s, found := Compile([]byte(`{"properties":{"v":{"format":"` + format + `"}}}`))
		if len(found) > 0 {
			t.Fatalf("%s: %v", format, found)
		}
		for _, value := range []string{"7", "1.5", "-1e300", "null", "true", "[]", "{}"} {
			if found := s.Validate(payload(t, `{"v":`+value+`}`)); len(found) > 0 {
				t.Errorf("%s of %s: %v", format, value, found)
			}
		}
	}
}
