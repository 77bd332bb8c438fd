package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTextsAreCutBetweenLetters(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"abc", 0, "…"}, {"日本", 6, "日本"}, {"日本", 5, "日…"}, {"日本", 3, "日…"}, {"日本", 2, "…"}, {"\x80\x80\x80", 2, "…"},
	} {
		if got := Clip(c.text, c.most); got != c.want {
			t.Errorf("Clip(%q, %d) = %q", c.text, c.most, got)
		}
	}
	if got := Quote(strings.Repeat("é", 41)); got != `"`+strings.Repeat("é", 40)+`…"` {
		t.Error(got)
	}
	if got := Quote("a\x1b[31m\n\"\xff"); got != `"a\x1b[31m\n\"\xff"` || !utf8.ValidString(got) {
		t.Error(got)
	}
	if got := OneLine("a\tb\r\nc\x1b[31m\u0085é\u00a0"); got != "a b  c [31m é\u00a0" {
		t.Errorf("%q", got)
	}
}

func TestTheWordThatWasMeant(t *testing.T) {
	known := []string{"limits", "network", "retries", "read_only", "timeout", "memory", "name", "a", "warm"}
	for word, want := range map[string]string{
		"limit": "limits", "Limits": "limits", "read-only": "read_only", "readonly": "read_only", "READ ONLY": "read_only", "netwrok": "network", "tiemout": "timeout", "retrys": "retries", "nam": "name",
		"limits": "limits", "": "", "x": "", "qqqqqqqqqqqq": "", "harm": "warm", "memry": "memory", strings.Repeat("limits", 100): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("bat", []string{"cat", "bar", "hat"}); got != "bar" { // as near as the others, and begins alike
		t.Error(got)
	}
	if got := Nearest("bat", []string{"hat", "cat"}); got != "cat" { // the first of the alphabet
		t.Error(got)
	}
	if got := Nearest("bat", nil); got != "" {
		t.Error(got)
	}
}

func TestTheDistanceOfTwoWords(t *testing.T) {
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "abc"}: 3, {"abc", "abc"}: 0, {"abc", "abd"}: 1, {"abc", "bc"}: 1, {"abc", "acb"}: 2, {"kitten", "sitting"}: 3, {"abc", "xyz"}: 3, {"flaw", "lawn"}: 2,
	} {
		if got, back := Distance(words[0], words[1]), Distance(words[1], words[0]); got != want || back != want {
			t.Errorf("%q: %d and %d, want %d", words, got, back, want)
		}
	}
}

func TestALogTellsNoNames(t *testing.T) {
	const name = "/secret/name"
	opened := &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	linked := &os.LinkError{Op: "link", Old: name, New: name, Err: fs.ErrExist}
	for want, err := range map[string]error{
		"open: permission denied":   fmt.Errorf("read the file: %w", opened),
		"link: file already exists": Wrap(Unavailable, linked, "it can't be written: %s", name),
		"input refused":             Wrap(Input, opened, "no field %q", name),
		"broken: why":               Wrap(Internal, errors.New("why"), "broken"),
		"no words of a client":      errors.New("no words of a client"),
	} {
		attr := LogAttr(err)
		if got := attr.Value.String(); attr.Key != "error" || got != want || strings.Contains(got, name) {
			t.Errorf("%s is logged as %s", err, attr)
		}
	}
	if got := LogAttr(nil); !got.Equal(slog.Any("error", nil)) {
		t.Errorf("nothing is logged as %v", got)
	}
}

func TestAnErrorHasAPublicAndAPrivateSide(t *testing.T) {
	cause := errors.New("cause")
	e := Wrap(NotFound, cause, "no unit %q", "u").WithHint("look at %s", "aod list").WithFindings([]Finding{{Message: "m"}})
	wrapped := fmt.Errorf("operation: %w", e)
	if got := Public(wrapped); got != e || e.Error() != `no unit "u": cause` || !errors.Is(wrapped, cause) || e.Hint != "look at aod list" || len(e.Findings) != 1 {
		t.Errorf("%+v", got)
	}
	if got := New(Input, "m").Error(); got != "m" {
		t.Error(got)
	}
	for err, kind := range map[error]Kind{context.Canceled: Cancelled, context.DeadlineExceeded: Deadline, errors.New("secret"): Internal} {
		if got := Public(fmt.Errorf("secret: %w", err)); got.Kind != kind || got.Msg != kind.Title() || got.Hint != "" || !errors.Is(got, err) {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if Is(nil, Internal) || !Is(cause, Internal) || !Is(wrapped, NotFound) || Is(wrapped, Input) {
		t.Error("an error is of one kind, and none is of none")
	}
	unknown := kinds + 3
	if unknown.String() != "internal" || ExitCode(New(unknown, "x")) != 125 || HTTPStatus(New(unknown, "x")) != 500 {
		t.Errorf("a kind that isn't known is %s", unknown)
	}
}

func TestFindingsAreShownAndSorted(t *testing.T) {
	warning, wrong := Finding{File: "a", Line: 2, Message: "m", Hint: "h", Warning: true}, Finding{Pointer: "/p", Message: "n"}
	given := []Finding{warning, wrong, warning}
	if diff := cmp.Diff([]Finding{wrong}, Errors(given)); diff != "" || !given[0].Warning || len(given) != 3 {
		t.Errorf("%s, given %v", diff, given)
	}
	if warning.String() != "a:2: m (h)" || wrong.String() != "/p: n" {
		t.Errorf("%s, %s", warning, wrong)
	}
	if got := Errors(nil); len(got) > 0 {
		t.Error(got)
	}
}

func TestWhatIsForeignInAMessage(t *testing.T) {
	if message, foreign := Foreignf("%s and %s, not %s", Foreign("a"), Foreign("b"), "c"); message != "a and b, not c" || foreign != "b" { // the last one
		t.Errorf("%s, %s", message, foreign)
	}
	if message, foreign := Foreignf("%d", 7); message != "7" || foreign != "" {
		t.Errorf("%s, %s", message, foreign)
	}
	none := func(string) bool { return false }
	e := Wrap(Input, errors.New("why"), "%s %s", Foreign(""), Foreign("x"))
	if told := e.Without(none); told.Msg != ` "*"` || told.Kind != Input || told.Err == nil || told.Foreign != nil || len(e.Foreign) != 2 {
		t.Errorf("%+v", told)
	}
}
