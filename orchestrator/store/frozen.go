package store

import (
	"cmp"
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

func (f frozen) cursor() string {
	return encodeCursor(frozenForm, f.at, f.newest, f.total, f.place.at, f.place.seq)
}

func parseFrozen(text string) (f frozen, err error) {
	err = decodeCursor(text, frozenForm, &f.at, &f.newest, &f.total, &f.place.at, &f.place.seq)
	if err == nil && (f.place.at > f.at || f.total < 0) {
		err = errCursor()
	}
	return f, err
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
