package outside

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestRulesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Rule{
		"api.example.com":         {Host: "api.example.com", Port: 443},
		"API.Example.com:443":     {Host: "api.example.com", Port: 443},
		"*.example.com:8443":      {Host: "example.com", Below: true, Port: 8443},
		"http://example.com":      {Host: "example.com", Port: 80, Plain: true},
		"http://*.example.com:81": {Host: "example.com", Below: true, Port: 81, Plain: true},
		"registry":                {Host: "registry", Port: 443},
		"xn--bcher-kva.example":   {Host: "xn--bcher-kva.example", Port: 443},
	} {
		got, err := ParseRule(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParseRule(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which is %+v, %v", text, got, again, err)
		}
	}
}

func TestWhatIsNoRuleSaysWhy(t *testing.T) {
	for text, why := range map[string]string{
		"": "names no host", "*": "names no host", "*.": "names no host", "http://": "names no host", ":443": "names no host",
		"10.0.0.1": "is an address", "127.1": "is an address", "0x7f.1": "is an address", "2130706433": "is an address", "1.2.3.0x4": "is an address",
		"[::1]": "is an address", "::1": "is an address", "[::1]:443": "is an address", "10.0.0.1:443": "is an address", "fe80::1%eth0": "is an address",
		"*.com": "top-level domain", "a.*.example.com": "elsewhere than at its beginning", "*example.com": "elsewhere than at its beginning",
		"https://example.com": "more than a host", "example.com/path": "more than a host", "http://example.com/": "more than a host",
		"example.com:0": "no port", "example.com:65536": "no port", "example.com:https": "no port", "example.com:+1": "no port", "example.com:": "no port",
		"bücher.example": "isn't a host's name", "a b": "isn't a host's name", "-a.example": "isn't a host's name", "a..b": "isn't a host's name", "user@example.com": "isn't a host's name",
		"example.com.": "isn't a host's name", strings.Repeat("a", 64) + ".example": "isn't a host's name", strings.Repeat("a.", 127) + "aa": "longer than a host's name",
	} {
		_, err := ParseRule(text)
		if !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), why) || fault.Public(err).Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAListNamesItsWrongEntries(t *testing.T) {
	list, findings := ParseList([]string{"a.example", "*", "A.example", "10.0.0.1"})
	if diff := cmp.Diff(List{{Host: "a.example", Port: 443}}, list); diff != "" {
		t.Error(diff)
	}
	if len(findings) != 2 || findings[0].Pointer != "/1" || findings[1].Pointer != "/3" {
		t.Errorf("%+v", findings)
	}
	if _, findings := ParseList(make([]string, MaxRules+1)); len(findings) != 1 || !strings.Contains(findings[0].Message, "65 hosts, the most is 64") {
		t.Errorf("%+v", findings)
	}
}

func TestWhatIsBeyondACap(t *testing.T) {
	for text, beyond := range map[string]string{
		"a.example <= a.example": "", "a.example <= *.a.example": "[a.example]", "x.a.example <= *.a.example": "",
		"y.x.a.example <= *.a.example": "", "*.a.example <= *.a.example": "", "*.x.a.example <= *.a.example": "", "*.a.example <= *.x.a.example": `["*.a.example"]`,
		"*.a.example <= a.example": `["*.a.example"]`, "ba.example <= *.a.example": "[ba.example]", "xa.example <= a.example": "[xa.example]",
		"a.example:444 <= a.example": "[a.example:444]", "http://a.example <= a.example": "[http://a.example]", "a.example <= http://a.example:443": "[a.example]",
		"a.example <= ": "[a.example]", "a.example b.example <= b.example": "[a.example]",
	} {
		asked, most, _ := strings.Cut(text, " <= ")
		own, findings := ParseList(strings.Fields(asked))
		limit, more := ParseList(strings.Fields(most))
		got := ""
		if over := own.Beyond(limit); len(over) > 0 {
			got = over.String()
		}
		if len(findings)+len(more) > 0 || got != beyond {
			t.Errorf("%s: %s, %v", text, got, findings)
		}
	}
}

func TestExceptions(t *testing.T) {
	for text, want := range map[string]string{
		"Wiki.internal": "wiki.internal", "db=10.0.0.5": "db=10.0.0.5", "six=::1": "six=::1", "mapped=::ffff:10.0.0.1": "mapped=10.0.0.1",
	} {
		if got, err := ParseException(text); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "*.internal", "10.0.0.5", "a=", "a=b", "a=fe80::1%eth0", "a:443", "a=10.0.0.0/8"} {
		if e, err := ParseException(text); !fault.Is(err, fault.Input) {
			t.Errorf("%q is %v, %v", text, e, err)
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, text := range []string{"api.example.com", "*.example.com:8443", "http://a.b:1", "[::1]:2", "0x1.2", "a=10.0.0.1"} {
		f.Add(text)
	}
	fuzzbound.Run(f, func(t *testing.T, text string) {
		if e, err := ParseException(text); err == nil {
			if again, err := ParseException(e.String()); err != nil || again != e {
				t.Errorf("%q is written as %q: %v", text, e, err)
			}
		}
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || again != r {
			t.Errorf("%q is written as %q: %v", text, r, err)
		}
		if !r.Covers(r) || IsAddress(r.Host) || strings.ContainsAny(r.Host, "*:/@ ") {
			t.Errorf("%+v", r)
		}
	})
}
