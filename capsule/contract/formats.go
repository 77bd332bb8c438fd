package contract

import (
	"net/mail"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xeipuuv/gojsonschema"
	"github.com/yosida95/uritemplate/v3"
	"golang.org/x/net/idna"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// formatBytes returns how many bytes of a string the check of a format takes for one step.
func formatBytes(name string) int {
	if name == "regex" || name == "uri-template" {
		return 8 // the tree of an expression is a hundred times its text
	}
	return 32
}

// texts checks the texts of a format, which is about nothing else.
type texts func(text string) bool

// IsFormat implements gojsonschema.FormatChecker.
func (holds texts) IsFormat(input any) bool {
	text, is := input.(string)
	return !is || holds(text)
}

// The formats are global in gojsonschema, and its own checks are too kind or too strict. Only this
// package imports it.
func init() {
	for name, holds := range map[string]texts{
		"date": isDate, "time": isTime,
		"date-time": func(text string) bool {
			return len(text) > 11 && isDate(text[:10]) && strings.ContainsAny(text[10:11], "Tt") && isTime(text[11:])
		},
		"duration":  func(text string) bool { return durationForm().MatchString(text) },
		"email":     func(text string) bool { return isASCII(text) && isEmail(text, isHostname) },
		"idn-email": func(text string) bool { return isEmail(text, isInternational) },
		"hostname":  isHostname, "idn-hostname": isInternational,
		"ipv4":                  func(text string) bool { return isAddress(text, netip.Addr.Is4) },
		"ipv6":                  func(text string) bool { return isAddress(text, netip.Addr.Is6) },
		"uuid":                  func(text string) bool { return uuidForm().MatchString(text) },
		"uri":                   func(text string) bool { return isASCII(text) && isAbsolute(text) },
		"uri-reference":         func(text string) bool { return isASCII(text) && isReference(text) },
		"iri":                   isAbsolute,
		"iri-reference":         isReference,
		"uri-template":          func(text string) bool { _, err := uritemplate.New(text); return err == nil },
		"regex":                 isExpression,
		"json-pointer":          func(text string) bool { return pointerForm().MatchString(text) },
		"relative-json-pointer": func(text string) bool { return relativeForm().MatchString(text) },
	} {
		gojsonschema.FormatCheckers.Add(name, holds)
	}
}

var (
	uuidForm     = lazyregexp.New(`^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)
	pointerForm  = lazyregexp.New(`^(?:/(?:[^~/]|~[01])*)*$`)
	relativeForm = lazyregexp.New(`^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$`)
	timeForm     = lazyregexp.New(`^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$`)
	// of RFC 3339, appendix A: no part but the first and the last is left out, and weeks stand alone
	durationForm = lazyregexp.New(`^P(?:\d+W|(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)(?:` + spanForm + `)?|` +
		spanForm + `)$`)
	hostForm = lazyregexp.New(`^[0-9a-zA-Z](?:[0-9a-zA-Z-]{0,61}[0-9a-zA-Z])?` +
		`(?:\.[0-9a-zA-Z](?:[0-9a-zA-Z-]{0,61}[0-9a-zA-Z])?)*$`)
	// of RFC 5892: what a label may not have, or only beside other letters
	outOfContext = lazyregexp.New(`[\x{640}\x{7FA}\x{302E}\x{302F}\x{3031}-\x{3035}\x{303B}]|(?:^|[^l])·|·(?:$|[^l])|` +
		`\x{375}(?:$|\P{Greek})|(?:^|\P{Hebrew})[\x{5F3}\x{5F4}]|` +
		`[\x{660}-\x{669}].*[\x{6F0}-\x{6F9}]|[\x{6F0}-\x{6F9}].*[\x{660}-\x{669}]`)
	japanese = lazyregexp.New(`[\p{Hiragana}\p{Katakana}\p{Han}]`)
	// of RFC 3986 and 3987: authority, path, query, fragment
	schemeForm    = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	referenceForm = lazyregexp.New(`^(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^#]*))?$`)
	allowedForm   = lazyregexp.New(`^(?:[\w\-.~:/?#\[\]@!$&'()*+,;=]|[^\x00-\x{9F}\x{FFFD}]|%[0-9A-Fa-f]{2})*$`)
	authorityForm = lazyregexp.New(`^(?:[^@\[\]]*@)?` +
		`(?:\[([0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\.[^@\[\]]+)\]|[^:@\[\]]*)(?::\d*)?$`)
)

// spanForm is the part of a duration below a day.
const spanForm = `T(?:\d+S|\d+M(?:\d+S)?|\d+H(?:\d+M(?:\d+S)?)?)`

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// isTime checks a full-time of RFC 3339. A second 60 is the last of a day in UTC.
func isTime(text string) bool {
	parts := timeForm().FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	number := func(i int) int { n, _ := strconv.Atoi(parts[i]); return n }
	hour, minute, second, away := number(1), number(2), number(3), number(5)*60+number(6)
	if hour > 23 || minute > 59 || second > 60 || number(5) > 23 || number(6) > 59 {
		return false
	}
	if parts[4] == "-" {
		away = -away
	}
	const day = 24 * 60
	return second < 60 || (hour*60+minute-away+day)%day == day-1
}

func isAddress(text string, of func(netip.Addr) bool) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && of(address) && address.Zone() == ""
}

func isEmail(text string, isHost func(string) bool) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return false
	}
	local, host := text[:at], text[at+1:]
	if literal, ok := strings.CutPrefix(host, "["); ok {
		literal, closed := strings.CutSuffix(literal, "]")
		six, is := strings.CutPrefix(literal, "IPv6:")
		if !closed || is && !isAddress(six, netip.Addr.Is6) || !is && !isAddress(literal, netip.Addr.Is4) {
			return false
		}
	} else if !isHost(host) {
		return false
	}
	if !strings.HasPrefix(local, `"`) && strings.ContainsAny(local, "()<> \t\r\n") {
		return false // comments and blanks are of headers
	}
	parsed, err := mail.ParseAddress(local + "@example.com")
	return err == nil && parsed.Name == ""
}

func isHostname(text string) bool {
	if len(text) > 253 || !hostForm().MatchString(text) {
		return false
	}
	lower := strings.ToLower(text)
	return !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--") || isInternational(lower)
}

// labels are the rules of domain names that aren't in ASCII, but for those of a letter's neighbours.
var labels = idna.New(idna.ValidateForRegistration())

func isInternational(text string) bool {
	if len(text) > 4*253 {
		return false
	}
	text = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(strings.ToLower(text))
	ascii, err := labels.ToASCII(text)
	if err != nil || len(ascii) > 253 || strings.HasSuffix(ascii, ".") {
		return false
	}
	written, err := labels.ToUnicode(ascii)
	return err == nil && !slices.ContainsFunc(strings.Split(written, "."), func(label string) bool {
		return outOfContext().MatchString(label) || strings.Contains(label, "・") && !japanese().MatchString(label)
	})
}

func isAbsolute(text string) bool { return schemeForm().MatchString(text) && isReference(text) }

// isReference checks a reference of RFC 3987, which in ASCII is one of RFC 3986.
func isReference(text string) bool {
	rest := text[len(schemeForm().FindString(text)):]
	parts := referenceForm().FindStringSubmatch(rest)
	if parts == nil || !allowedForm().MatchString(text) || strings.ContainsAny(parts[2]+parts[3]+parts[4], "[]") {
		return false
	}
	if first, _, _ := strings.Cut(parts[2], "/"); rest == text && parts[1] == "" && strings.Contains(first, ":") {
		return false // it looks like a scheme that is none
	}
	authority := authorityForm().FindStringSubmatch(parts[1])
	return authority != nil && (authority[1] == "" || authority[1][0] == 'v' || isAddress(authority[1], netip.Addr.Is6))
}

// isExpression parses, and doesn't compile: a short text can repeat a long one a thousand times, and
// compiling has no bound.
func isExpression(text string) bool {
	_, err := syntax.Parse(inRE2(text), syntax.Perl)
	return err == nil
}
