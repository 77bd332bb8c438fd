package config

import (
	"strings"
	"testing"
)

func TestARangeOfUserIDs(t *testing.T) {
	for text, want := range map[string]UIDRange{
		"200000-265535": {200_000, 265_535}, "65532": {65_532, 65_532}, "65532-65532": {65_532, 65_532}, "1000-2147483647": {1000, 1<<31 - 1},
	} {
		var got UIDRange
		v := uids{&got}
		if err := v.set(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		again := UIDRange{}
		if err := (uids{&again}).set(v.String()); err != nil || again != want {
			t.Errorf("%s is written %s: %+v, %v", text, v, again, err)
		}
	}
	for text, says := range map[string]string{
		"": "isn't a range", "a": "isn't a range", "-5": "isn't a range", "1000-": "isn't a range", "0": "isn't a range", "01000": "isn't a range", "1 - 2": "isn't a range",
		"999-2000": "out of range", "1000-2147483648": "out of range", "99999999999": "isn't a range", "3000-2000": "below the first",
	} {
		got := UIDRange{1, 2}
		if err := (uids{&got}).set(text); err == nil || !strings.Contains(err.Error(), says) || got != (UIDRange{1, 2}) {
			t.Errorf("%q: %v, %+v", text, err, got)
		}
	}
}
