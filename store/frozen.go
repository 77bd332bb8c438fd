package store

import (
	"cmp"
	"encoding/binary"
)

// place is a place in the order of changes.
type place struct{ at, seq int64 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.at, other.at), cmp.Compare(p.seq, other.seq))
}

// frozen is a moment of which all pages of a list of changes are, and the place up to which the
// pages before have them.
type frozen struct {
	at     int64 // the number of the last change
	newest int64 // the greatest seq of a run
	total  int64 // how many runs all pages have
	place  place
}

// The form of its cursor: a byte that names the form, then five numbers.
const (
	frozenForm = 2
	frozenSize = 1 + 5*8
)

func (f frozen) cursor() string {
	b := make([]byte, 0, frozenSize)
	b = append(b, frozenForm)
	for _, n := range []int64{f.at, f.newest, f.total, f.place.at, f.place.seq} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the same bits, back again in parseFrozen
	}
	return cursorText.EncodeToString(b)
}

// parseFrozen reads a cursor from an untrusted client. The error is an Input fault.
func parseFrozen(text string) (frozen, error) {
	if len(text) != cursorText.EncodedLen(frozenSize) {
		return frozen{}, errCursor()
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) != frozenSize || b[0] != frozenForm {
		return frozen{}, errCursor()
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[1+8*i:])) } //nolint:gosec,mnd // as in cursor
	f := frozen{at: n(0), newest: n(1), total: n(2), place: place{at: n(3), seq: n(4)}}
	if f.place.at > f.at || f.total < 0 {
		return frozen{}, errCursor()
	}
	return f, nil
}

// page drops the extra rows that were read to see whether there is more.
func (f frozen) page(rows []changed, limit int) ChangedPage {
	p := ChangedPage{Total: f.total}
	if len(rows) > limit {
		rows = rows[:limit]
		next := f
		next.place = rows[limit-1].place
		p.Next = next.cursor()
	}
	for _, row := range rows {
		p.Runs = append(p.Runs, row.run)
	}
	return p
}
