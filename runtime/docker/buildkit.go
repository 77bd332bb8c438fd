package docker

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// status is what we read of BuildKit's StatusResponse (api/services/control): enough
// to tell what is going on. Written by hand, because BuildKit's own packages would be
// two thirds of the program.
type status struct {
	vertexes []vertex
	logs     []vertexLog
}

// vertex is a step of the build.
type vertex struct {
	digest, name, err          string
	started, completed, cached bool
}

// vertexLog is output of a step, in no particular pieces.
type vertexLog struct {
	vertex string
	text   []byte
}

var errBadStatus = errors.New("not a status of BuildKit")

// decodeStatus decodes a StatusResponse. It takes at most what the bytes hold; fields
// that it doesn't know are skipped.
func decodeStatus(b []byte) (status, error) {
	var s status
	err := eachField(b, func(f field) error {
		switch f.number {
		case 1:
			v, err := decodeVertex(f.bytes)
			s.vertexes = append(s.vertexes, v)
			return err
		case 3:
			out, err := decodeLog(f.bytes, 4)
			s.logs = append(s.logs, out)
			return err
		case 4:
			out, err := decodeLog(f.bytes, 3) // a linter's warning
			out.text = fmt.Appendf(nil, "warning: %s\n", out.text)
			s.logs = append(s.logs, out)
			return err
		}
		return nil
	})
	return s, err
}

func decodeVertex(b []byte) (v vertex, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case 1:
			v.digest = string(f.bytes)
		case 3:
			v.name = string(f.bytes)
		case 4:
			v.cached = f.varint != 0
		case 5:
			v.started = true
		case 6:
			v.completed = true
		case 7:
			v.err = string(f.bytes)
		}
		return nil
	})
	return v, err
}

// decodeLog reads what belongs to a step, and the text in the field of a number.
func decodeLog(b []byte, text protowire.Number) (out vertexLog, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case 1:
			out.vertex = string(f.bytes)
		case text:
			out.text = f.bytes
		}
		return nil
	})
	return out, err
}

// field is one field of a message: bytes or varint is set, by its type.
type field struct {
	number protowire.Number
	bytes  []byte
	varint uint64
}

// eachField walks through the fields of a message.
func eachField(b []byte, do func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errBadStatus
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errBadStatus
		}
		b = b[n:]
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}
