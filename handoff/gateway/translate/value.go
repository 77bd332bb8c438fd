package translate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	noWord  = "it has no word for it"
	notThis = "it has no word for this value"
)

// problems keeps the first of what can't be said, so that readers and writers needn't look after each field.
type problems struct {
	first   *Error
	answers bool   // an answer is read: thoughts, and fields that nobody asks for, are left out
	marks   string // a field that changes no answer, and falls wherever it stands; "": none
}

// value is a value of a request or an answer, and where it stands. The zero value isn't there.
type value struct {
	bad *problems
	at  string // a JSON pointer
	raw []byte
}

// there reports whether it is given: null isn't.
func (v value) there() bool { return len(v.raw) > 0 && string(v.raw) != "null" }

// refuse notes that the value can't be said.
func (v value) refuse(why string) {
	if v.bad.first == nil {
		v.bad.first = &Error{Path: v.at, Why: why}
	}
}

// unsaid refuses a value that is given.
func (v value) unsaid() {
	if v.there() {
		v.refuse(noWord)
	}
}

func (v value) is(first byte, what string) bool {
	if v.there() && v.raw[0] != first {
		v.refuse("it isn't " + what)
		return false
	}
	return v.there()
}

func (v value) isText() bool { return len(v.raw) > 0 && v.raw[0] == '"' }

// text returns a text; "" where there is none.
func (v value) text() string {
	if !v.is('"', "a text") {
		return ""
	}
	return strictjson.Text(v.raw)
}

func (v value) yes() bool {
	if v.there() && !oneOf(string(v.raw), "true", "false") {
		v.refuse("it is neither true nor false")
	}
	return string(v.raw) == "true"
}

// integer returns a whole number from 0; -1 where there is none.
func (v value) integer() int {
	n, err := strconv.Atoi(string(v.raw))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// maxElements bounds one list.
const maxElements = 100_000

func (v value) list() (all []value) {
	if !v.is('[', "a list") {
		return nil
	}
	for raw := range strictjson.Elements(v.raw) {
		if len(all) == maxElements {
			v.refuse("it has too many elements")
			return nil
		}
		all = append(all, value{v.bad, v.at + "/" + strconv.Itoa(len(all)), raw})
	}
	return all
}

// object returns the fields of an object; where it isn't there, none.
func (v value) object() *fields {
	f := &fields{value: v, below: map[string]*fields{}}
	if v.is('{', "an object") {
		f.left = maps.Collect(strictjson.Members(v.raw))
	}
	return f
}

// fields are those of an object that nobody has read yet.
type fields struct {
	value
	left  map[string][]byte
	below map[string]*fields // objects of which some fields were read
}

// take reads a field, which may lie below others: a/b.
func (f *fields) take(path string) value {
	name, rest, deep := strings.Cut(path, "/")
	if deep {
		if f.below[name] == nil {
			f.below[name] = f.take(name).object()
		}
		return f.below[name].take(rest)
	}
	raw := f.left[name]
	delete(f.left, name)
	return value{f.bad, f.at + "/" + strictjson.Escape(name), raw}
}

// only takes a field that does nothing with the values that are given, and refuses it with others.
func (f *fields) only(path string, harmless ...string) {
	if v := f.take(path); v.there() && !oneOf(string(v.raw), harmless...) && !f.bad.answers {
		v.refuse(notThis)
	}
}

// done refuses what is left of a request: nobody has a word for it.
func (f *fields) done() {
	if f.bad.answers {
		return
	}
	delete(f.left, f.bad.marks)
	for _, name := range slices.Sorted(maps.Keys(f.left)) {
		f.take(name).unsaid()
	}
	for _, name := range slices.Sorted(maps.Keys(f.below)) {
		f.below[name].done()
	}
}
