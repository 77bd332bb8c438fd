package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 200 << 20: "200.0 MiB", 3 << 40: "3.0 TiB", 1 << 62: "4194304.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestWhatWasSpentOnModelsTellsWhatWasCached(t *testing.T) {
	for want, tokens := range map[string]api.ModelTokens{
		"2 model calls, 12.0k tokens, 0.5":                            {Input: 10_000, Output: 2000},
		"2 model calls, 12.0k tokens, 71 % of the input cached, 0.5":  {Input: 10_000, Cached: 7199, Output: 2000},
		"2 model calls, 12.0k tokens, 100 % of the input cached, 0.5": {Input: 10_000, Cached: 10_000},
		"2 model calls, 12.0k tokens, 0.5 ":                           {Input: 10_000, Cached: 99},
		"2 model calls, 12.0k tokens, 0.5  ":                          {Cached: 99},
	} {
		u := api.ModelUsage{Calls: 2, Charged: 12_000, Tokens: tokens, Cost: 500_000_000}
		if got := ModelUsage(u); got != strings.TrimRight(want, " ") {
			t.Errorf("%+v: %s", tokens, got)
		}
	}
}

func TestAgesAndDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", time.Hour: "1h", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 72 * time.Hour: "3d"} {
		if got := Age(d); got != want {
			t.Errorf("ageText(%v) = %q, want %q", d, got, want)
		}
	}
	from := time.Now()
	for d, want := range map[time.Duration]string{1234 * time.Microsecond: "1ms", 1234 * time.Millisecond: "1.2s", 3*time.Minute + 1600*time.Millisecond: "3m2s"} {
		if got := Took(&from, nil, from.Add(d)); got != want {
			t.Errorf("durationText(%v) = %q, want %q", d, got, want)
		}
	}
}
