package mask

import (
	"bytes"
	"strings"
)

// Pieces masks a text that comes in pieces, as a model writes it, and shows of each what is
// known: the last words wait for the next one. It isn't for several at once.
type Pieces struct{ gathered }

// NewPieces returns Pieces that have seen nothing. With nil, nothing is masked.
func NewPieces(m *Masker) *Pieces {
	p := &Pieces{}
	if m != nil {
		p.mask = NewWriter(&p.out, m)
	}
	return p
}

// Next returns what is known once there is another piece; "" is nothing more.
func (p *Pieces) Next(piece string) string {
	if p.mask == nil {
		return piece
	}
	_, _ = p.mask.Write([]byte(piece)) // a buffer takes all
	_ = p.mask.EndWord()
	return p.taken()
}

// Pause returns what was held back, where nothing may go on with it but a PEM block.
func (p *Pieces) Pause() string {
	if p.mask == nil {
		return ""
	}
	_ = p.mask.pause()
	return p.taken()
}

// gathered is masked text until it is taken.
type gathered struct {
	out  bytes.Buffer
	mask *Writer
}

func (g *gathered) taken() string {
	text := g.out.String()
	g.out.Reset()
	return text
}

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
