package runtime

import (
	"fmt"
	"testing"
)

func TestSandboxesHaveUsersOfTheirOwn(t *testing.T) {
	seen := map[int]bool{}
	all := UIDs{First: 200_000, Last: 265_535}
	for n := range 200 {
		id := fmt.Sprintf("01a20452-afa7-7c19-a5%02x-%012x", n, n)
		uid := all.Of(id)
		if uid < all.First || uid > all.Last || uid != all.Of(id) {
			t.Fatalf("%d", uid)
		}
		seen[uid] = true
	}
	if len(seen) < 195 {
		t.Errorf("200 sandboxes have %d users", len(seen))
	}
	for _, c := range []struct {
		in   UIDs
		want int
	}{{UIDs{}, 0}, {UIDs{5, 4}, 0}, {UIDs{0, 7}, 0}, {UIDs{65532, 65532}, 65532}} {
		if got := c.in.Of("a"); got != c.want {
			t.Errorf("%v: %d", c.in, got)
		}
	}
}
