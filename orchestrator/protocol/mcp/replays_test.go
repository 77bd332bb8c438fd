package mcp

import (
	"fmt"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"
)

func TestReplaysKeepTheNewestStreams(t *testing.T) {
	t.Parallel()
	r := newReplays()
	r.bytes, r.streams = 100, 3
	after := func(stream string, index int) (texts []string) {
		for data, err := range r.After(trusted.Context(t), "s", stream, index) {
			if err != nil {
				return []string{"lost"}
			}
			texts = append(texts, string(data))
		}
		return texts
	}
	write := func(stream string, size int) {
		must(t, r.Append(trusted.Context(t), "s", stream, fmt.Appendf(nil, "%0*d", size, 0)))
	}
	must(t, r.Open(trusted.Context(t), "s", "a"))
	write("a", 1)
	write("a", 2)
	if got := fmt.Sprint(after("a", -1), after("a", 0), after("a", 9), after("b", -1), after("a", -2)); got != "[0 00] [00] [] [lost] [lost]" {
		t.Error(got)
	}
	must(t, r.Open(trusted.Context(t), "s", "b"))
	must(t, r.Open(trusted.Context(t), "s", "c"))
	must(t, r.Open(trusted.Context(t), "s", "d")) // no room for a
	write("b", 90)
	write("c", 20) // no room for b
	write("b", 1)  // it goes on
	write("d", 101)
	if got := fmt.Sprint(after("a", -1), after("b", 0), after("d", -1), r.size); got != "[lost] [lost] [lost] 20" {
		t.Error(got)
	}
	write("", 9)
	if got := fmt.Sprint(after("", -1), after("", 5)); got != "[] []" {
		t.Error(got)
	}
	must(t, r.Open(trusted.Context(t), "another", "a"))
	must(t, r.SessionClosed(trusted.Context(t), "s"))
	if len(r.order) != 1 || len(r.each) != 1 || r.size != 0 {
		t.Errorf("%v is left, of %d bytes", r.order, r.size)
	}
}
