package strictjson

import "iter"

// Cursor goes through the text of a value that was checked, from value to value: however deep it looks,
// it reads each byte once, and it builds nothing. At a mistake it stops, and all loops over it end.
type Cursor struct {
	reader reader
	broken bool
}

// NewCursor returns a cursor before the value.
func NewCursor(text []byte) *Cursor {
	return &Cursor{reader: reader{data: text, rules: Rules{Ambiguous: true, Unbounded: true}}}
}

// Peek returns the first byte of the value that comes next, 0 where none does.
func (c *Cursor) Peek() byte {
	if c.broken {
		return 0
	}
	return c.reader.peek()
}

// Value reads the value that comes next, and returns its text without the space around it, nil where
// there is none.
func (c *Cursor) Value() []byte {
	c.Peek()
	start := c.reader.pos
	if c.broken {
		return nil
	}
	if _, err := c.reader.value(); c.fails(err) {
		return nil
	}
	return c.reader.data[start:c.reader.pos]
}

// Members yields the names of the object that comes next; of any other value it yields nothing. The
// cursor stands before the value of each, which the loop has to read.
func (c *Cursor) Members() iter.Seq[string] {
	return func(yield func(string) bool) {
		for there := c.enter('{', '}'); there; there = c.more('}') {
			name, err := c.reader.name()
			if c.fails(err) || !yield(name) {
				return
			}
		}
	}
}

// Elements yields for each value of the array that comes next; of any other value it yields nothing.
// The cursor stands before each, which the loop has to read.
func (c *Cursor) Elements() func(yield func() bool) {
	return func(yield func() bool) {
		for there := c.enter('[', ']'); there; there = c.more(']') {
			if !yield() {
				return
			}
		}
	}
}

// enter passes the bracket of an array or object, and reports whether something is in there.
func (c *Cursor) enter(opening, closing byte) bool {
	if c.Peek() != opening || len(c.reader.path) == MaxDepth {
		c.broken = true
		return false
	}
	c.reader.pos++
	if c.reader.peek() == closing {
		c.reader.pos++
		return false
	}
	c.reader.path = append(c.reader.path, step{})
	return true
}

// more passes a comma, or the closing bracket, and reports whether it was a comma.
func (c *Cursor) more(closing byte) bool {
	if c.broken {
		return false
	}
	more, err := c.reader.more(closing)
	return !c.fails(err) && more
}

func (c *Cursor) fails(err error) bool {
	c.broken = c.broken || err != nil
	return c.broken
}

// Members yields the fields of an object in their order: each name, and the text of its
// value without the space around it. The text must have been checked; one that is no
// object yields nothing, and one that isn't JSON yields what comes before the mistake.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := NewCursor(object)
		for name := range c.Members() {
			if value := c.Value(); value == nil || !yield(name, value) {
				return
			}
		}
	}
}

// Elements yields the texts of an array's values as Members does those of an object.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := NewCursor(array)
		for range c.Elements() {
			if value := c.Value(); value == nil || !yield(value) {
				return
			}
		}
	}
}

// Text returns what the text of a string says; of another value, and of no JSON, it is "". What it says
// of half a surrogate pair is a replacement character.
func Text(value []byte) string {
	c := NewCursor(value)
	if c.Peek() != '"' {
		return ""
	}
	text, _ := c.reader.text(true)
	return text
}
