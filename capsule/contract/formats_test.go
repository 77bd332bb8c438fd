package contract

import (
	"strings"
	"testing"
)

func TestEachFormatHoldsItsTextsAndNoOthers(t *testing.T) {
	for format, c := range map[string]struct{ holds, breaks []string }{
		"date":                  {[]string{"2024-02-29"}, []string{"2023-02-29", "2024-2-9", "20240229", "2024-02-29Z", "२०२४-०२-०१"}},
		"time":                  {[]string{"15:04:05Z", "15:04:05.25z", "15:04:05+02:00", "23:59:60Z", "00:29:60+00:30", "18:59:60-05:00"}, []string{"24:00:00Z", "3pm", "", "15:04:05", "15:04Z", "15:04:05+24:00", "15:04:05+02:60", "15:04:05+0200", "22:59:60Z", "15:04:61Z", "15:04:05,5Z", "15:04:05 Z"}},
		"date-time":             {[]string{"2024-12-31T23:59:59-11:30", "2024-12-31t23:59:59z", "2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00"}, []string{"2024-12-31", "23:59:59", "23:59:59Z", "2024-12-31T23:59:59", "2024-12-31 23:59", "2024-12-31 23:59:59Z", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T12:00:60Z", "2024-12-31TT23:59:59Z", ""}},
		"duration":              {[]string{"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P1DT12H", "P2W", "P1Y2M3DT4H5M6S", "P1M2D", "P1Y2M", "PT1M2S", "P01D", "P" + strings.Repeat("9", 80) + "D"}, []string{"", "P", "PT", "PT1D", "4DT12H", "P1YT", "P2D1Y", "P1D2H", "P2S", "P1Y2W", "P0Y1W", "P1WT1H", "P২Y", "P1", "PT0.5S", "PT0,5S", " P1D", "P1D ", "P1Y2D", "PT1H2S", "-P1D", "P-1D", "P1D2T3H", "P1e2D", "p1d"}},
		"email":                 {[]string{"name@example.com", "a+b@example.com", "a@[192.0.2.1]", "a@[IPv6:::1]", "a@localhost"}, []string{"name", "@example.com", "name@", "a..b@example.com", ".a@example.com", "Name <a@example.com>", "a(b)@example.com", "a@exa_mple.com", "a@[192.0.2.300]", "a@b@example.com", "é@example.com", "a@-b.com"}},
		"idn-email":             {[]string{"né@example.com", "실례@실례.테스트", "a@example.com"}, []string{"né", "né@ex ample.com"}},
		"hostname":              {[]string{"example.com", "a", "a-b.c", "EXAMPLE.com", "xn--bcher-kva.example", "1.2"}, []string{"-a.com", "a-.com", "a..b", "a b", "a_b", "a.", ".", "", "bücher.example", "xn--x", strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 127) + "aa"}},
		"idn-hostname":          {[]string{"bücher.example", "example.com", "実例。例", "l·l", "α͵β", "א׳ב", "カ・", "ب٠ب"}, []string{"-ü", "ü..a", "a·b", "α͵a", "a׳", "a・b", "ب٠۰", "〮a", "", "。", strings.Repeat("ü", 64)}},
		"ipv4":                  {[]string{"0.0.0.0", "255.255.255.255"}, []string{"1.2.3", "1.2.3.4.5", "::1", "::ffff:1.2.3.4", "01.2.3.4", "1.2.3.256"}},
		"ipv6":                  {[]string{"::", "::1", "2001:db8::1", "::ffff:1.2.3.4"}, []string{"1.2.3.4", "2001:db8", ":::", "fe80::1%eth0", "12345::"}},
		"uri":                   {[]string{"https://example.com/a?b#c", "urn:a:b", "mailto:a@example.com", "http://u:p@[::1]:80/%20", "tel:+1-2"}, []string{"/a", "example.com", "https://a b", "https://a/%2", "https://a/{b}", "https://a:b", "http://[::1", "https://a/[b]", "https://a#b#c", "http://1:2:3/", "1a:b", "https://é.com", "//a/b", "a\\\\b:", ":a"}},
		"uri-reference":         {[]string{"", "a", "/a?b", "//a/b", "#a", "./a:b", "?"}, []string{"a b", "1a:b", "#a^", "\\\\a\\b", "é"}},
		"iri":                   {[]string{"https://é.com/ü?ß#é"}, []string{"é.com", "https://é com", "http://é:b"}},
		"iri-reference":         {[]string{"/é", "é"}, []string{"é b", "\\\\é"}},
		"uri-template":          {[]string{"https://a/{b}/{c:3}{?d,e*}", "", "a"}, []string{"{a", "a}", "{a:b}", "{ a}", "{}"}},
		"uuid":                  {[]string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430c8", "00000000-0000-0000-0000-000000000000"}, []string{"6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "6ba7b810-9dad-11d1-80b4-00c04fd430cg"}},
		"regex":                 {[]string{"^a+$", "", "(a|b)", "\\\\u00e9", "\\\\p{L}"}, []string{"(", "a**", "(?=a)", "[z-a]", "\\\\ug"}},
		"json-pointer":          {[]string{"", "/a/0", "/a~0b~1c"}, []string{"a", "/a~2", "#/a"}},
		"relative-json-pointer": {[]string{"0", "1/a", "0#"}, []string{"/a", "01/a", "-1", ""}},
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
	for _, format := range strings.Fields("date time date-time duration email hostname ipv4 ipv6 uri uri-reference uri-template uuid regex idn-hostname json-pointer relative-json-pointer idn-email iri iri-reference") {
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
