package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var allowed = map[string][]string{
	"svg":   {"width", "height", "viewBox", "role", "aria-label", "class", "x", "y"},
	"g":     {"class", "transform", "data-key", "role", "aria-label", "aria-hidden"},
	"a":     {"href", "aria-label"},
	"path":  {"class", "d", "marker-end"},
	"rect":  {"class", "x", "y", "width", "height", "rx"},
	"text":  {"class", "x", "y", "text-anchor"},
	"use":   {"href"},
	"title": nil, "defs": nil,
	"marker": {"id", "viewBox", "refX", "refY", "markerWidth", "markerHeight", "orient"},
}

// checkXML reads a picture as XML, and finds elements and attributes that none should have.
func checkXML(t *testing.T, svg string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, string(token))
		case xml.StartElement:
			attributes, ok := allowed[token.Name.Local]
			if !ok {
				t.Fatalf("there is an element %q", token.Name.Local)
			}
			for _, a := range token.Attr {
				if !slices.Contains(attributes, a.Name.Local) {
					t.Fatalf("%s has an attribute %q", token.Name.Local, a.Name.Local)
				}
			}
		}
	}
}

func TestForeignTextStaysText(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"markup":        `<script>alert(1)</script>`,
		"quotes":        `" onload="alert(1)" x='y' & co`,
		"end of title":  `</title></text></svg><img src=x>`,
		"controls":      "a\x00b\x1bc\nd\xff\uffff",
		"right to left": "\u202egnp.exe שלום עולם",
		"long":          strings.Repeat("long ", 2000),
		"wide":          strings.Repeat("語", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := &Graph{Nodes: []Node{{ID: "1" + text, Name: text}}, Edges: []Edge{{To: "1" + text, Label: text}}}
			g := &Graph{
				Nodes: []Node{
					{ID: "2" + text, Name: text, State: State(text), Line: text, Aside: text, Href: "?at=" + text, Hint: text},
					{ID: "3" + text, Name: text, State: Bad, Line: text, Inside: inner, Href: text},
				},
				Edges: []Edge{{From: "2" + text, To: "2" + text, Label: text, Way: Way(text)}, {From: "2" + text, To: "3" + text}},
			}
			svg, err := Draw(g, Options{Label: text})
			if err != nil {
				t.Fatal(err)
			}
			checkXML(t, string(svg))
			if strings.ContainsAny(string(svg), "\x00\x1b\u202e\uffff") || len(svg) > 50_000 {
				t.Errorf("%d bytes: %.2000s", len(svg), svg)
			}
		})
	}
}

func TestALinkLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for href, want := range map[string]string{
		"#steps": "#steps", "?open=a%20b": "?open=a%20b", "../units/x": "../units/x", "": "",
		"javascript:alert(1)": "", "JavaScript:alert(1)": "", "//evil.example/": "", "https://evil.example": "",
		"data:text/html,x": "", "\tjavascript:alert(1)": "", "java\nscript:alert(1)": "", `/\evil.example`: "/%5Cevil.example",
	} {
		if got := (&Node{Href: href}).href(); got != want {
			t.Errorf("%q leads to %q, want %q", href, got, want)
		}
	}
}

func TestANodeSaysItsStateInWordsAndByAMark(t *testing.T) {
	t.Parallel()
	g := &Graph{Nodes: []Node{
		{ID: "texts", Name: "texts", State: Running, Aside: "10 min", Progress: &Progress{35, 2, 1000}, Href: "?open=texts", Hint: "unfold"},
		{ID: "table", Name: "table", State: None, Line: "csv-report"},
	}}
	svg, err := Draw(g, Options{Label: "Graph of mail"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`role="group" aria-label="Graph of mail"`,
		`<a href="?open=texts" aria-label="texts: running, 10 min, 37/1000, 2 failed; unfold"><g class="nd run">`,
		`<use href="#i-run"/>`, `<rect class="mb" x="39" y="50" width="2" height="4" rx="0"/>`,
		`<g role="img" aria-label="table: not begun, csv-report"><g class="nd none">`,
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("there is no %s in %s", want, svg)
		}
	}
}

func TestALongNameIsCutAndWholeInItsTitle(t *testing.T) {
	t.Parallel()
	name := "a-name-that-is-much-longer-than-any-node-is-wide"
	svg, err := Draw(&Graph{Nodes: []Node{{ID: "1", Name: name}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`>a-name-that-[a-z-]+…<title>` + name + `</title></text>`).MatchString(string(svg)) {
		t.Error(svg)
	}
}

func TestWhatWasTakenIsDrawnWholeAboveTheRest(t *testing.T) {
	t.Parallel()
	g := &Graph{
		Nodes: []Node{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}},
		Edges: []Edge{
			{From: "a", To: "b"},
			{From: "b", To: "c"},
			{From: "c", To: "d"},
			{From: "a", To: "d", Way: Untaken},
			{From: "b", To: "d", Way: Taken},
		},
	}
	l := laid(t, g, false)[0]
	joining := l.lines[4]
	if joining.joins != l.lines[3] {
		t.Fatal("lines to the same node don't join")
	}
	svg := string(l.svg(""))
	taken := strings.Index(svg, `<path class="e done" d="`+l.path(joining, true)+`" marker-end="url(#m)"/>`)
	if taken < strings.Index(svg, `<path class="e no"`) {
		t.Error(svg)
	}
}
