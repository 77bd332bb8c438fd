package web_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// shownForm is a unit's form as a browser has it of the served page.
type shownForm struct {
	t    testing.TB
	root *html.Node
}

// form reads the form of a unit out of its page.
func (a answer) form(t testing.TB) shownForm {
	t.Helper()
	page, err := html.Parse(strings.NewReader(a.body))
	must(t, err)
	for n := range page.Descendants() {
		if has(n, "data-form") {
			return shownForm{t, n}
		}
	}
	t.Fatalf("%s: there is no form in %.2000s", a.Request.URL, a.body)
	return shownForm{}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// text is what stands in an element.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// parts are what a browser posts of the form, but for its key, which is returned beside them: names and values with
// the line breaks that HTML prescribes. Nothing was typed, and no button pressed but the one that has no name.
func (f shownForm) parts() (key string, parts []part) {
	for n := range f.root.Descendants() {
		name := attr(n, "name")
		if n.Type != html.ElementNode || name == "" || has(n, "disabled") {
			continue
		}
		value, posts := f.value(n)
		switch {
		case posts && name == "key":
			key = value
		case posts:
			parts = append(parts, part{crlf(name), "", crlf(value)})
		}
	}
	return key, parts
}

// value is what a control has, and whether it posts that.
func (f shownForm) value(n *html.Node) (value string, posts bool) {
	switch n.Data {
	case "textarea":
		return text(n), true
	case "select":
		return chosen(n), true
	case "input":
		return f.typed(n)
	}
	return "", false // buttons
}

// chosen is the value of the option that is selected, or of the first.
func chosen(n *html.Node) string {
	first := true
	value := ""
	for option := range n.Descendants() {
		if option.Data == "option" && (first || has(option, "selected")) {
			value, first = attr(option, "value"), false
		}
	}
	return value
}

func (f shownForm) typed(n *html.Node) (value string, posts bool) {
	value = attr(n, "value")
	switch kind := attr(n, "type"); kind {
	case "hidden":
		return value, true
	case "file": // in which none was chosen
		return "", true
	case "radio":
		return value, has(n, "checked")
	case "date": // a browser shows nothing else
		if at, err := time.Parse(time.DateOnly, value); err != nil || at.Year() < 1 {
			value = ""
		}
		return value, true
	case "":
		return strings.NewReplacer("\r", "", "\n", "").Replace(value), true
	default:
		f.t.Fatalf("this browser has no control of type %q", kind)
		return "", false
	}
}

// crlf ends lines as browsers post them.
func crlf(text string) string {
	return strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(text)
}

// whole is the input that stands in the form as JSON.
func (f shownForm) whole() string {
	for n := range f.root.Descendants() {
		if n.Data == "textarea" && attr(n, "name") == "#" {
			return text(n)
		}
	}
	f.t.Fatal("the input doesn't stand there as JSON")
	return ""
}

// sameJSON reports whether two texts are the same value, with its numbers as they were written.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	left, err := strictjson.Decode([]byte(a))
	must(t, err)
	right, err := strictjson.Decode([]byte(b))
	must(t, err)
	return reflect.DeepEqual(left, right)
}
