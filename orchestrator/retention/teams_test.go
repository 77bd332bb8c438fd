package retention

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

func TestWhoKeepsMuchGivesWayFirst(t *testing.T) {
	for name, c := range map[string]struct {
		room  int64
		bytes map[string]int64
		want  map[string]int64
	}{
		"all have room":          {100, map[string]int64{"a": 60, "b": 40}, map[string]int64{}},
		"one team":               {100, map[string]int64{"a": 300}, map[string]int64{"a": 100}},
		"the larger one":         {100, map[string]int64{"a": 300, "b": 20, "c": 10}, map[string]int64{"a": 70}},
		"two that share what is": {100, map[string]int64{"a": 300, "b": 80, "c": 10}, map[string]int64{"a": 45, "b": 45}},
		"all of them alike":      {90, map[string]int64{"a": 50, "b": 50, "c": 50}, map[string]int64{"a": 30, "b": 30, "c": 30}},
		"no room at all":         {1, map[string]int64{"a": 5, "b": 5}, map[string]int64{"a": 0, "b": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := diff.Diff(c.want, sharesOf(c.room, c.bytes)); d != "" {
				t.Error(d)
			}
		})
	}
	for range 1000 {
		bytes, room := map[string]int64{}, rand.Int64N(1000)+1
		for n := range 1 + rand.IntN(5) {
			bytes[string(rune('a'+n))] = rand.Int64N(500)
		}
		most := sharesOf(room, bytes)
		var sum, least int64
		for team, has := range bytes {
			if share, gives := most[team]; gives {
				has, least = share, share
			}
			sum += has
		}
		if sum > room {
			t.Fatalf("%v in %d: %v", bytes, room, most)
		}
		for team, has := range bytes {
			if _, gives := most[team]; len(most) > 0 && !gives && has > least {
				t.Fatalf("%s keeps %d: %v in %d: %v", team, has, bytes, room, most)
			}
		}
	}
}

func sharesOf(room int64, bytes map[string]int64) map[string]int64 {
	return shares(room, slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) }), bytes)
}
