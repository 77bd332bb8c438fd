package spool

import (
	"io"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestASpoolStopsWhereTheRoomEnds(t *testing.T) {
	full := fault.New(fault.Unavailable, "full")
	looks := 0
	spool, err := New(t.TempDir(), func(int64) error {
		if looks++; looks > 3 {
			return full
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Remove()
	from := &counted{Reader: io.LimitReader(endless{}, 1<<30)}
	if err := spool.Add("doc", "doc", from, 1<<30); !fault.Is(err, fault.Unavailable) || from.n > 4*roomStep {
		t.Errorf("after %d bytes: %v", from.n, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
