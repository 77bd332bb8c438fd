package store

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/agent-on-demand/aod/api/fault"
)

// position is a place in the order of a list: by a time, and of those of one time by seq.
type position struct{ at, seq int64 }

// The forms of cursors: a byte that names the form, then its numbers.
const (
	positionForm = 1
	snapshotForm = 2
)

var cursorText = base64.RawURLEncoding.Strict()

func (s seal) encodeCursor(form byte, numbers ...int64) string {
	b := []byte{form}
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the same bits, back again in decodeCursor
	}
	return s.text(b)
}

// decodeCursor reads a cursor from an untrusted client. The error is an Input fault.
func (s seal) decodeCursor(text string, form byte, numbers ...*int64) error {
	b, err := s.bytes(text)
	if err != nil || len(b) != 1+8*len(numbers) || b[0] != form {
		return errCursor()
	}
	for i, n := range numbers {
		*n = int64(binary.BigEndian.Uint64(b[1+8*i:])) //nolint:gosec // the same bits, as in encodeCursor
	}
	return nil
}

func (s seal) cursor(p position) string { return s.encodeCursor(positionForm, p.at, p.seq) }

func (s seal) position(text string) (p position, err error) {
	err = s.decodeCursor(text, positionForm, &p.at, &p.seq)
	return p, err
}

func errCursor() error {
	return fault.New(fault.Input, "the cursor is not one that was given out").
		WithHint("use the cursor of the page before as it is, or none to begin anew")
}

// listed is a run and its place in the order of a list.
type listed struct {
	run   Run
	place position
}

// columns are what scanListed reads, with the columns that the list is ordered by.
func columns(at, seq string) string {
	return "SELECT " + searched + ", runs.record, " + at + " AS at, " + seq + " AS seq"
}

// noColumns are for rows that are counted alone.
func noColumns(string, string) string { return "SELECT 1" }

func scanListed(row scanner, l *listed) error {
	return scanSearched(row, &l.run, &l.run.Record, &l.place.at, &l.place.seq)
}

// bytes implements large.
func (l listed) bytes() int { return len(l.run.Record) }

// most implements large.
func (listed) most() int { return listBytes }

func runsOf(rows []listed) (all []Run) {
	for _, row := range rows {
		all = append(all, row.run)
	}
	return all
}
