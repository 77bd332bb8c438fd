package form_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func compiled(t testing.TB, schema string) *contract.Schema {
	t.Helper()
	s, findings := contract.Compile([]byte(schema))
	if s == nil {
		t.Fatalf("%s: %v", schema, findings)
	}
	return s
}

// sample has fields of each kind.
const sample = `{"required":["text"],"properties":{
	"text":{"type":"string"}, "n":{"type":"float"}, "i":{"type":"int"}, "b":{"type":"bool"}, "e":{"enum":["a",1.0,null]}, "d":{"type":"string","format":"date"},
	"w":{"type":"string","format":"date-time"}, "f":{"type":"string","format":"file_path"}, "fs":{"type":"list","items":{"type":"string","format":"file_path"}},
	"l":{"type":"list","items":{"type":"string"}}, "es":{"type":"list","items":{"enum":["a","b"]}},
	"o":{"type":"dict","properties":{"x":{"type":"string"},"y/z":{"type":"int"}}},
	"rows":{"type":"list","items":{"type":"dict","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"list","items":{"type":"int"}},"photo":{"type":"string","format":"file_path"}}}},
	"j":{"type":"dict"}}}`

// posted is what a browser posts of a query, such as "/a=1&#/b=[]"; a file's value begins with "@".
func posted(t testing.TB, query string) form.Posted {
	t.Helper()
	p := form.Posted{Values: map[string][]string{}, Files: map[string][]string{}}
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if file, is := strings.CutPrefix(value, "@"); is {
			p.Files[name] = append(p.Files[name], file)
		} else if name != "" {
			p.Values[name] = append(p.Values[name], value)
		}
	}
	return p
}

func shortly(found []fault.Finding) (list []string) {
	for _, f := range found {
		list = append(list, f.Pointer+"|"+f.Message)
		if f.Hint == "" && !strings.Contains(f.Message, "JSON") {
			list = append(list, "no hint")
		}
	}
	return list
}

func TestReadMakesAnInput(t *testing.T) {
	t.Parallel()
	f := compiled(t, sample).Form()
	for _, c := range []struct {
		name, query, want string
		findings          []string
	}{
		{"nothing", "", `{}`, nil},
		{"empty controls give nothing", "/text=&/n=&/b=&/e=&/l/0=&/o/x=&/rows/0/k=&#/j=&#=", `{}`, nil},
		{"in the order of the form", "/n=1&/text=a b ", `{"text":"a b ","n":1}`, nil},
		{"line breaks as they were typed", "/text=a\r\nb\rc\n", `{"text":"a\nb\nc\n"}`, nil},
		{"numbers as they were typed", "/n= 1e2 &/i=9007199254740993", `{"n":1e2,"i":9007199254740993}`, nil},
		{"numbers that aren't any", "/text=x&/n=1,5&/i=3 pieces", `{"text":"x"}`, []string{"/n|isn't a number", "/i|isn't a whole number"}},
		{"numbers of another kind", "/n=null&/i=1e999", `{}`, []string{"/n|isn't a number", "/i|isn't a number that can be used: a number is too large"}},
		{"numbers that JSON writes otherwise", "/n=+5", `{}`, []string{"/n|isn't a number"}},
		{"a fraction is for the contract to refuse", "/i=1.5", `{"i":1.5}`, nil},
		{"yes and no", "/b=false", `{"b":false}`, nil},
		{"something else", "/b=on&/e=a", `{}`, []string{"/b|isn't yes or no", "/e|isn't one of the choices"}},
		{"a choice", "/e=1.0", `{"e":1.0}`, nil},
		{"null as a choice", "/e=null", `{"e":null}`, nil},
		{"rows with gaps, by their number", "/l/10=c&/l/2=b&/l/0=a&/l/3=", `{"l":["a","b","c"]}`, nil},
		{"rows of objects", "/rows/4/v/7=1&/rows/4/v/9=2&/rows/1/k=a&/rows/2/photo=@p.png", `{"rows":[{"k":"a"},{"photo":"p.png"},{"v":[1,2]}]}`, nil},
		{"boxes that are ticked", "/es=\"b\"&/es=\"a\"", `{"es":["b","a"]}`, nil},
		{"files", "/f=@a.txt&/fs/0=old.txt&/fs=@b.txt&/fs=@c.txt", `{"f":"a.txt","fs":["old.txt","b.txt","c.txt"]}`, nil},
		{"a file in the place of a name", "/f=old.txt&/f=@new.txt", `{"f":"new.txt"}`, nil},
		{"a file for a text", "/text=@a.txt&/l=@b.txt", `{"text":"a.txt","l":["b.txt"]}`, nil},
		{"two files for one", "/f=@a&/f=@b", `{"f":"a"}`, []string{"/f|takes one file only"}},
		{"a file for a number", "/n=@a", `{}`, []string{"/n|the form doesn't take this value here"}},
		{"JSON", `#/j={ "b" : [1.0 , {}], "a":"<" }`, `{"j":{"b":[1.0,{}],"a":"<"}}`, nil},
		{"JSON in the place of a value", `#/n="x"&#/text=""&#/l={}`, `{"text":"","n":"x","l":{}}`, nil},
		{"JSON that isn't any", `#/j={"a":1,"a":2}&#/n=[&/b=true`, `{"b":true}`, []string{"/n|isn't valid JSON: line 1, column 2: the text ends where a value was expected", `/j|isn't valid JSON: line 1, column 8: the field "a" stands twice in one object`}},
		{"fields that the form doesn't have", `#={"more":1.0,"o":{"x":1}}&/text=x`, `{"text":"x","more":1.0,"o":{"x":1}}`, nil},
		{"a part of them in an object", `#/o={"more":1}&/o/y~1z=2`, `{"o":{"y/z":2,"more":1}}`, nil},
		{"a value given twice", `#={"n":1}&/n=2&/i=1&#/i=2&#/l="x"&/l/0=a&#/o=[]&/o/x=a`, `{"n":1}`, []string{"/n|is given twice: in its field and as JSON", "/i|is given twice: in its field and as JSON", "/l|is given twice: in its field and as JSON", "/o|is given twice: in its field and as JSON"}},
		{"rows after those in JSON", `#/l=["a","b"]&/l/0=c`, `{"l":["a","b","c"]}`, nil},
		{"empty ones that are meant", `#/l=[]&#/o={}&#/rows/0={}`, `{"l":[],"o":{},"rows":[{}]}`, nil},
		{"what the page itself has is ignored", "timeout=5&token=x&=y", `{}`, nil},
		{"what the form doesn't have is told", "/old=1&/text/x=2&/rows/0/old=3&/rows/0/k=a&#/none=4&/j=5&/none=", `{"rows":[{"k":"a"}]}`, []string{
			"/j|the form doesn't take this value here", "/none|the form doesn't take this value here", "/old|the form doesn't take this value here", "/rows/0/old|the form doesn't take this value here", "/text/x|the form doesn't take this value here",
		}},
		{"indexes that are none", "/l/00=a&/l/-1=b&/l/1001=c&/l/x=d&/l/1000=e", `{"l":["e"]}`, []string{
			"/l/-1|the form doesn't take this value here", "/l/00|the form doesn't take this value here", "/l/1001|the form doesn't take this value here", "/l/x|the form doesn't take this value here",
		}},
		{"no UTF-8", "/text=\xff", `{}`, []string{"/text|isn't valid UTF-8"}},
		{"the whole as another value", `#=5`, `5`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, input, found := form.Read(f, posted(t, c.query))
			if diff := cmp.Diff(c.want, string(input)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.findings, shortly(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRequiredFieldsThatAreEmpty(t *testing.T) {
	t.Parallel()
	f := compiled(t, `{"required":["s","i","l","o","ns","no","nl","j"],"properties":{"s":{"type":"string"},"i":{"type":"int"},"l":{"type":"list","items":{"type":"int"}},"o":{"required":["p"],"properties":{"p":{"properties":{"q":{"type":"int"}}}}},
		"ns":{"type":["string","null"]},"no":{"anyOf":[{"type":"null"},{"properties":{"q":{"type":"int"}}}]},"nl":{"type":["list","null"],"items":{"type":"int"}},"j":{}}}`).Form()
	_, input, found := form.Read(f, form.Posted{})
	if diff := cmp.Diff(`{"l":[],"o":{"p":{}},"ns":null,"no":null,"nl":null}`, string(input)); diff != "" || found != nil {
		t.Error(diff, found)
	}
	_, input, _ = form.Read(f, posted(t, `#/ns=x&#={"o":1,"l":7}`))
	if diff := cmp.Diff(`{"no":null,"nl":null,"o":1,"l":7}`, string(input)); diff != "" {
		t.Error(diff)
	}
}

// browser posts the controls as a browser does.
func browser(c *form.Control) form.Posted {
	p := form.Posted{Values: map[string][]string{"page": {"1"}}}
	for each := range c.All() {
		if each.Kind != form.Object && each.Kind != form.List && each.Kind != form.JSON {
			p.Values[each.Pointer] = []string{strings.ReplaceAll(each.Text, "\n", "\r\n")}
		}
		if each.Boxed() {
			p.Values[each.JSONName()] = []string{strings.ReplaceAll(each.JSON, "\n", "\r\n")}
		}
	}
	return p
}

// again fills a form with an input, and reads what a browser posts of it.
func again(t testing.TB, f *form.Field, input string) (c *form.Control, read string) {
	t.Helper()
	filled := form.Fill(f, []byte(input))
	c, made, found := form.Read(f, browser(filled))
	if len(found) > 0 {
		t.Fatalf("%s: %v", input, found)
	}
	if !reflect.DeepEqual(filled, c) { // cmp.Diff takes seconds of large ones
		t.Fatalf("%s: the controls aren't the same: %s", input, cmp.Diff(filled, c))
	}
	return c, string(made)
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	left, err := strictjson.Decode([]byte(a))
	right, err2 := strictjson.Decode([]byte(b))
	if err != nil || err2 != nil {
		t.Fatalf("%v, %v", err, err2)
	}
	return cmp.Equal(left, right)
}

func TestFillKeepsWhatItCantShow(t *testing.T) {
	t.Parallel()
	f := compiled(t, sample).Form()
	for _, c := range []struct{ name, input, boxes string }{
		{"what fits", `{"text":"a\nb","n":1e2,"i":10.0,"b":false,"e":"a","d":"2026-02-28","w":"x","f":"a.txt","fs":["b"],"l":["x"],"o":{"x":"y"},"rows":[{"k":"a","v":[1,2.0]},{"photo":"p"}]}`, ""},
		{"values of other types", `{"text":1,"n":"1","i":null,"b":0,"e":[],"d":{},"f":true,"l":{"a":1},"o":[1],"rows":[7,{"k":null}],"es":null}`, "/text /n /i /b /e /d /f /l /es /o /rows/0 /rows/1/k"},
		{"texts that a browser changes", `{"text":"a\rb","d":"2026-02-30","w":"a\nb","f":"a\u0000","l":["\u001b"]}`, "/text /d /w /f /l/0"},
		{"empty ones", `{"text":"","l":[],"o":{},"rows":[{},{"k":""},{"v":[]},{"v":[0]}]}`, "/text /l /o /rows/0 /rows/1/k /rows/2/v"},
		{"items that are empty", `{"l":["","a",null,""]}`, "/l/0 /l/2 /l/3"},
		{"fields that the form doesn't have", `{"more":{"b":1.0,"a":[]},"o":{"x":"y","z":1}}`, " /o"},
		{"a choice written otherwise", `{"e":"\u0061","es":["b","c"]}`, "/es/1"},
		{"JSON", `{"j":{"b":1.50,"a":"<&>"}}`, "/j"},
		{"a long list", `{"l":["x"` + strings.Repeat(`,"x"`, 1000) + `],"es":["a"]}`, "/l"},
		{"many rows with many controls", `{"rows":[{}` + strings.Repeat(`,{}`, 999) + `],"l":["a"]}`, "/rows/*"},
		{"too many of them", `{"rows":[{"k":"a","v":[1` + strings.Repeat(`,1`, 900) + `]}` + strings.Repeat(`,{"k":"b","v":[1`+strings.Repeat(`,1`, 400)+`]}`, 40) + `]}`, "/rows/*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, read := again(t, f, c.input)
			if !sameJSON(t, c.input, read) {
				t.Errorf("it became %.300s", read)
			}
			var boxes []string
			count := 0
			for each := range got.All() {
				count++
				if each.JSON != "" {
					boxes = append(boxes, each.Pointer)
				}
			}
			if diff := cmp.Diff(c.boxes, strings.Join(boxes, " ")); diff != "" && len(boxes) < 15 || count > 5000 {
				t.Error(count, diff)
			}
		})
	}
}

func TestFillTakesAnything(t *testing.T) {
	t.Parallel()
	f := compiled(t, sample).Form()
	for input, box := range map[string]string{"": "", " ": "", "{}": "", "[1]": "[\n  1\n]", "null": "null", `{"a":1,"a":2}`: `{"a":1,"a":2}`, "{": "{", "\xff": "\xff"} {
		if c := form.Fill(f, []byte(input)); c.JSON != box || len(c.Parts) != len(f.Fields) {
			t.Errorf("of %q the box has %q", input, c.JSON)
		}
	}
	_, read := again(t, compiled(t, `{"type":"dict"}`).Form(), `{"a":1.0}`)
	if read != `{"a":1.0}` {
		t.Errorf("of a form that is one box: %s", read)
	}
	if _, read, _ := form.Read(compiled(t, `{"type":"dict"}`).Form(), form.Posted{}); string(read) != "{}" {
		t.Errorf("of an empty box: %s", read)
	}
}

func TestWhatAPageAsksOfAControl(t *testing.T) {
	t.Parallel()
	c := form.Fill(compiled(t, sample).Form(), []byte(`{"text":"a\nb\nc\nd","l":["x","y"],"rows":[{"v":[1]}],"o":{"z":1}}`))
	for pointer, want := range map[string]string{"": "", "/text": "/text", "/text/x": "/text", "/l/1": "/l/1", "/l/2": "/l", "/rows/0/v/0": "/rows/0/v/0", "/rows/0/none/7": "/rows/0", "/o/y~1z": "/o/y~1z", "/none": "", "x": ""} {
		if got := c.At(pointer).Pointer; got != want {
			t.Errorf("%q is at %q", pointer, got)
		}
	}
	if text := c.At("/text"); text.Rows() != 4 || text.Boxed() || text.ID() != "f%2Ftext" || c.At("/o").JSONName() != "#/o" || !c.At("/o").Boxed() {
		t.Errorf("%+v", text)
	}
	row := c.At("/rows").Add()
	if row == nil || row.Pointer != "/rows/1" || len(row.Parts) != 3 || c.At("/rows/1/k").Pointer != "/rows/1/k" {
		t.Errorf("the new row is %+v", row)
	}
	if c.At("/text").Add() != nil || row.At("/v").Pointer != "/rows/1/v" {
		t.Error("a text has rows")
	}
	list := form.Fill(compiled(t, sample).Form(), []byte(`{"l":["x"]}`)).At("/l")
	for list.Add() != nil {
	}
	if len(list.Parts) != 1000 {
		t.Errorf("%d rows", len(list.Parts))
	}
	list.Parts, list.JSON = nil, `["a","b"]`
	if row := list.Add(); row.Pointer != "/l/2" {
		t.Errorf("after two items in JSON comes %s", row.Pointer)
	}
	list.Parts, list.JSON = nil, "[0"+strings.Repeat(",0", 999)+"]"
	if list.Add() != nil {
		t.Error("there is a row after a thousand items in JSON")
	}
}
