package mask

import (
	"strings"
)

// Lines masks a stream that comes in lines, and gives one for each: a secret may go on in the
// next line, which then lacks it. It isn't for several at once.
type Lines struct{ gathered }

// NewLines returns Lines that have seen nothing.
func NewLines(m *Masker) *Lines {
	l := &Lines{}
	l.mask = NewWriter(&l.out, m)
	return l
}

// Next returns what is known of a line, masked. One that is cut goes on with the next one: its
// end may come with that, or with Rest.
func (l *Lines) Next(text string, cut bool) string {
	_, _ = l.mask.Write([]byte(text)) // a buffer takes all
	if !cut {
		_, _ = l.mask.Write([]byte("\n"))
		_ = l.mask.EndLine()
	}
	return strings.TrimSuffix(l.taken(), "\n")
}

// Rest returns what was held back, at the end of the stream; "" is nothing. No line may follow.
func (l *Lines) Rest() string {
	_ = l.mask.Close()
	return strings.TrimSuffix(l.taken(), "\n")
}
