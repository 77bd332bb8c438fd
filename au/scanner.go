package au

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// scanner goes through a text that is known to be JSON and finds what readers of JSON
// don't agree on: names that stand twice in one object, halves of surrogate pairs, numbers
// beyond a double. It builds nothing, so that a large output costs little more than its
// bytes. contract.Decode has the same rules, and builds.
type scanner struct {
	data       []byte
	pos        int
	names      []map[string]bool // of the objects around pos; nil while there are none
	warningsAt int
}

func (s *scanner) scan() error {
	for s.pos < len(s.data) {
		var err error
		switch c := s.data[s.pos]; {
		case c == '{' || c == '[':
			err = s.open()
		case c == '}' || c == ']':
			s.names = s.names[:len(s.names)-1]
			s.pos++
		case c == '"':
			err = s.text()
		case c == '-' || c >= '0' && c <= '9':
			err = s.number()
		default: // space, commas, colons, the letters of true, false and null
			s.pos++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) open() error {
	if len(s.names) == contract.MaxDepth {
		return misbehaved(OutputTooDeep, s.pos, "its JSON is nested more than %d levels deep", contract.MaxDepth)
	}
	s.names = append(s.names, nil)
	s.pos++
	return nil
}

// text reads a string, which is a name if a colon follows.
func (s *scanner) text() error {
	start := s.pos
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
	literal := s.data[start:s.pos]
	if halfSurrogate(literal) {
		return misbehaved(OutputAmbiguous, start, "a string in its JSON has half a surrogate pair in it, at byte %d", start)
	}
	if rest := bytes.TrimLeft(s.data[s.pos:], space); len(rest) > 0 && rest[0] == ':' {
		return s.name(literal, start, len(s.data)-len(rest)+1)
	}
	return nil
}

func (s *scanner) name(literal []byte, start, value int) error {
	name := string(literal[1 : len(literal)-1])
	if bytes.IndexByte(literal, '\\') >= 0 {
		_ = json.Unmarshal(literal, &name) // a string of a valid document can be read
	}
	names := s.names[len(s.names)-1]
	if names[name] {
		return misbehaved(OutputAmbiguous, start, "a field stands twice in one object of its JSON, at byte %d", start)
	}
	if names == nil {
		names = map[string]bool{}
		s.names[len(s.names)-1] = names
	}
	names[name] = true
	if name == "warnings" && len(s.names) == 1 {
		s.warningsAt = value
	}
	return nil
}

// halfSurrogate looks for what encoding/json replaces in silence and others keep.
func halfSurrogate(literal []byte) bool {
	for i := 0; i+6 <= len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if literal[i+1] != 'u' {
			i++
			continue
		}
		unit := hex4(literal[i+2:])
		if unit < 0xd800 || unit > 0xdfff {
			i += 5
			continue
		}
		pair := literal[i+6:]
		if unit > 0xdbff || len(pair) < 6 || pair[0] != '\\' || pair[1] != 'u' || hex4(pair[2:])&^0x3ff != 0xdc00 {
			return true
		}
		i += 11
	}
	return false
}

func hex4(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // they are, in a valid document
	return n
}

func (s *scanner) number() error {
	start := s.pos
	for s.pos < len(s.data) && bytes.IndexByte([]byte("+-.eE0123456789"), s.data[s.pos]) >= 0 {
		s.pos++
	}
	if _, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64); err != nil {
		return misbehaved(OutputAmbiguous, start, "a number in its JSON is larger than a double can hold, at byte %d", start)
	}
	return nil
}
