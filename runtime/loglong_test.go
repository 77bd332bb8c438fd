package runtime

import (
	"io"
	goruntime "runtime"
	"testing"
)

// endless is a stream of one character.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// What one line takes has to do with what is kept, and not with its length.
//
//nolint:paralleltest // others would allocate as well
func TestALineWithoutAnEndTakesLittleMemory(t *testing.T) {
	const length, limit = 256 << 20, 8 << 20
	kept, longest := 0, 0
	log := NewLog(limit, func(line LogLine) {
		kept += len(line.Text)
		longest = max(longest, len(line.Text))
	})
	log.pace.hurry()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	log.read("stdout", io.LimitReader(endless{}, length))
	log.finish()
	goruntime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*limit {
		t.Errorf("%d bytes were allocated", took)
	}
	if _, truncated := log.Bytes(); kept != limit || longest > maxLine || !truncated {
		t.Errorf("%d bytes are kept, in lines of up to %d; truncated: %v", kept, longest, truncated)
	}
}
