package mask

import "bytes"

// Pieces masks a text that comes in pieces, as a model writes it, and shows of each what is
// known: the last words wait for the next one. It isn't for several at once.
type Pieces struct{ gathered }

// NewPieces returns Pieces that have seen nothing.
func NewPieces(m *Masker) *Pieces {
	p := &Pieces{}
	p.mask = NewWriter(&p.out, m)
	return p
}

// Next returns what is known once there is another piece; "" is nothing more.
func (p *Pieces) Next(piece string) string {
	_, _ = p.mask.Write([]byte(piece)) // a buffer takes all
	_ = p.mask.EndWord()
	return p.taken()
}

// Pause returns what was held back, where nothing may go on with it but a PEM block.
func (p *Pieces) Pause() string {
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
