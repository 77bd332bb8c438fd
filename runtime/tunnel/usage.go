package tunnel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// Usage is how much of the engine's disk a run uses.
type Usage struct {
	Bytes   int64 // of blocks, not of lengths: the holes of a sparse file don't count
	Entries int64 // files and directories
}

// usageSize is the size of an answer in bytes: two numbers of eight bytes, big endian.
const usageSize = 16

// Usage asks the far end and waits for its answer. Every error is ErrDown.
func (l *Listener) Usage(ctx context.Context) (Usage, error) {
	session := l.session.Load()
	if session == nil {
		return Usage{}, ErrDown
	}
	stream, err := session.Open()
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	defer func() { _ = stream.Close() }() // the answer was read, or is of no use
	if err := stream.SetDeadline(time.Now().Add(l.options.Answer)); err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	// A Close would not end a read that is under way.
	defer context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })()
	var answer [usageSize]byte
	if _, err := io.ReadFull(stream, answer[:]); err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	return usageOf(answer), nil
}

// usageOf turns a number over the range into the largest of the range.
func usageOf(answer [usageSize]byte) Usage {
	const most = 1<<63 - 1
	return Usage{
		Bytes:   int64(min(binary.BigEndian.Uint64(answer[:8]), most)),
		Entries: int64(min(binary.BigEndian.Uint64(answer[8:]), most)),
	}
}

func (u Usage) answer() []byte {
	answer := binary.BigEndian.AppendUint64(nil, uint64(max(u.Bytes, 0)))
	return binary.BigEndian.AppendUint64(answer, uint64(max(u.Entries, 0)))
}
