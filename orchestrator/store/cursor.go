package store

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/agent-on-demand/aod/api/fault"
)

// position is a place in the order of lists.
type position struct{ created, seq int64 }

// The forms of cursors: a byte that names the form, then its numbers.
const (
	positionForm = 1
	frozenForm   = 2
)

var cursorText = base64.RawURLEncoding.Strict()

func encodeCursor(form byte, numbers ...int64) string {
	b := []byte{form}
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the same bits, back again in decodeCursor
	}
	return cursorText.EncodeToString(b)
}

// decodeCursor reads a cursor from an untrusted client. The error is an Input fault.
func decodeCursor(text string, form byte, numbers ...*int64) error {
	size := 1 + 8*len(numbers)
	if len(text) != cursorText.EncodedLen(size) {
		return errCursor()
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) != size || b[0] != form {
		return errCursor()
	}
	for i, n := range numbers {
		*n = int64(binary.BigEndian.Uint64(b[1+8*i:])) //nolint:gosec // the same bits, as in encodeCursor
	}
	return nil
}

func (p position) cursor() string { return encodeCursor(positionForm, p.created, p.seq) }

func parseCursor(text string) (p position, err error) {
	err = decodeCursor(text, positionForm, &p.created, &p.seq)
	return p, err
}

func errCursor() error {
	return fault.New(fault.Input, "the cursor is not one that was given out").
		WithHint("use the cursor of the page before as it is, or none to begin anew")
}
