package store

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/agent-on-demand/aod/fault"
)

// position is a place in the order of lists.
type position struct{ created, seq int64 }

// The form of a cursor: a byte that names the form, then the two numbers.
const (
	cursorForm = 1
	cursorSize = 1 + 8 + 8
)

var cursorText = base64.RawURLEncoding.Strict()

func (p position) cursor() string {
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorForm)
	b = binary.BigEndian.AppendUint64(b, uint64(p.created)) //nolint:gosec // the same bits, back again in parseCursor
	b = binary.BigEndian.AppendUint64(b, uint64(p.seq))     //nolint:gosec // as above
	return cursorText.EncodeToString(b)
}

// parseCursor reads a cursor from an untrusted client. The error is an Input fault.
func parseCursor(text string) (position, error) {
	if len(text) != cursorText.EncodedLen(cursorSize) {
		return position{}, errCursor()
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) != cursorSize || b[0] != cursorForm {
		return position{}, errCursor()
	}
	return position{
		created: int64(binary.BigEndian.Uint64(b[1:])), //nolint:gosec // the same bits, as in cursor
		seq:     int64(binary.BigEndian.Uint64(b[9:])), //nolint:gosec // as above
	}, nil
}

func errCursor() error {
	return fault.New(fault.Input, "the cursor is not one that was given out").
		WithHint("use the cursor of the page before as it is, or none to begin anew")
}
