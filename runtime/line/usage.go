package line

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// Usage is the room that a run takes on the engine's disk.
type Usage struct {
	Bytes   int64 // of blocks, not lengths: a sparse file takes no room
	Entries int64 // files and directories
}

// usageSize is that of an answer: two numbers of eight bytes, big endian.
const usageSize = 16

// usageTime bounds the wait for one answer.
var usageTime = 10 * time.Second

// Usage asks the far end. ErrDown is for a line that is down.
func (l *Line) Usage(ctx context.Context) (Usage, error) {
	session := l.session.Load()
	if session == nil {
		return Usage{}, ErrDown
	}
	stream, err := session.Open()
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	defer func() { _ = stream.Close() }() // it was read, or is of no use
	if err := stream.SetDeadline(time.Now().Add(usageTime)); err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	// Its Close would let a read that is under way wait on.
	defer context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })()
	var answer [usageSize]byte
	if _, err := io.ReadFull(stream, answer[:]); err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	return usageOf(answer), nil
}

// usageOf takes a number that can't be for as large as can be.
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
