package secrets

import (
	"bytes"
	"slices"
)

// leastFound is how long a secret has to be, in bytes, for its occurrence to be no accident.
const leastFound = 8

// CanBeFound reports whether the secret is long enough for a Finder.
func (s Secret) CanBeFound() bool { return len(s) >= leastFound }

// In reports whether a text holds the secret, as a Finder finds it. One of less than 8 bytes is found
// as it is alone, the empty one never.
func (s Secret) In(text []byte) bool {
	_, found := NewFinder(s).Next(text, true)
	return found
}

// Finder looks for a secret in a text that comes in parts: as it is, and also where characters of
// it are escaped as in strings of JSON (\/, \u002d, also in a string within a string), in addresses
// (%2D) or in HTML (&#45;). What is encoded as a whole, such as in base64, it doesn't find. It takes
// a time that grows with the text, and keeps no more of the text than the beginning of an escape.
type Finder struct {
	plain     matcher // of bytes
	escaped   matcher // of the characters that they stand for
	undecided []byte  // the last bytes, where they may begin an escape
	read      int64   // bytes that came
}

// NewFinder returns a Finder that has seen nothing.
func NewFinder(s Secret) *Finder {
	f := &Finder{plain: newMatcher([]byte(s))}
	if read := unescaped([]byte(s)); len(read) >= leastFound {
		f.escaped = newMatcher(read)
	}
	return f
}

// Next takes a further part of the text; last says that there is no other. It returns how many
// bytes of the text come before anything that is the secret or may become it, which is at most 25
// times as long, and whether the secret is there. After that there may be no further part.
func (f *Finder) Next(part []byte, last bool) (free int64, found bool) {
	at := f.read
	f.read += int64(len(part))
	f.plain.feedAll(part, at)
	f.feedEscaped(part, at, last)
	free = f.read - int64(len(f.undecided))
	for _, m := range []*matcher{&f.plain, &f.escaped} {
		if m.have > 0 {
			free = min(free, m.begin())
		}
		found = found || m.found()
	}
	if last && !found {
		return f.read, false
	}
	return free, found
}

// feedEscaped feeds what the bytes of a part stand for.
func (f *Finder) feedEscaped(part []byte, at int64, last bool) {
	m := &f.escaped
	if len(m.key) == 0 {
		return
	}
	text := slices.Concat(f.undecided, part)
	at -= int64(len(f.undecided))
	for len(text) > 0 && !m.found() {
		if m.have == 0 {
			dull := m.dull(text)
			text, at = text[dull:], at+int64(dull)
			if len(text) == 0 {
				break
			}
		}
		c, size := symbol(text, last)
		if size == 0 {
			break
		}
		if c != '\\' { // it may escape what is escaped
			m.feed(c, at)
		}
		if m.have > 0 && at-m.begin() > int64(maxEscape*len(m.key)) {
			m.have = 0
		}
		text, at = text[size:], at+int64(size)
	}
	f.undecided = bytes.Clone(text)
}

// matcher finds a key by the algorithm of Knuth, Morris and Pratt. Without a key it finds nothing.
type matcher struct {
	key  []byte
	back []int   // how much of the key still ends where so much of it does, and the next byte isn't its
	have int     // bytes of the key that the last ones fed are
	from []int64 // where the last ones fed begin in the text, in a ring
	next int     // its place for the next one
}

func newMatcher(key []byte) matcher {
	m := matcher{key: key, back: make([]int, len(key)), from: make([]int64, len(key))}
	for i, n := 1, 0; i < len(key); i++ {
		for n > 0 && key[i] != key[n] {
			n = m.back[n-1]
		}
		if key[i] == key[n] {
			n++
		}
		m.back[i] = n
	}
	return m
}

func (m *matcher) found() bool { return m.have > 0 && m.have == len(m.key) }

// begin is where the bytes begin that may be the key's.
func (m *matcher) begin() int64 {
	if m.have > m.next {
		return m.from[m.next-m.have+len(m.from)]
	}
	return m.from[m.next-m.have]
}

// feed takes a byte that begins at a place of the text. There may be none after the key.
func (m *matcher) feed(c byte, at int64) {
	for m.have > 0 && m.key[m.have] != c {
		m.have = m.back[m.have-1]
	}
	if m.key[m.have] == c {
		m.have++
	}
	m.from[m.next] = at
	if m.next++; m.next == len(m.from) {
		m.next = 0
	}
}

// feedAll takes the bytes of a part up to the end of the key.
func (m *matcher) feedAll(part []byte, at int64) {
	if len(m.key) == 0 {
		return
	}
	for i := 0; i < len(part) && !m.found(); i++ {
		if m.have == 0 {
			next := bytes.IndexByte(part[i:], m.key[0])
			if next < 0 {
				return
			}
			i += next
		}
		m.feed(part[i], at+int64(i))
	}
}

// dull returns how many bytes a text begins with that neither begin the key nor an escape.
func (m *matcher) dull(text []byte) int {
	first := m.key[0]
	for i, c := range text {
		if c == first || c == '\\' || c == '%' || c == '&' {
			return i
		}
	}
	return len(text)
}
