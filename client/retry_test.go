package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPausesGrowAndBeginAnew(t *testing.T) {
	var made []int64 // milliseconds
	c := &Client{pause: func(_ context.Context, d time.Duration) error {
		made = append(made, d.Milliseconds())
		return nil
	}}
	lost := errors.New("lost")
	r := c.newRetrier()
	for r.wait(t.Context(), lost) == nil {
	}
	if diff := cmp.Diff([]int64{100, 200, 400}, made); diff != "" {
		t.Error("a call:", diff)
	}
	made = nil
	r.renew()
	for r.wait(t.Context(), lost) == nil {
	}
	want := []int64{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000, 5000, 5000}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error("a stream:", diff)
	}
}
