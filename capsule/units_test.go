package capsule

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

func TestParseSize(t *testing.T) {
	good := map[any]int64{
		"512MiB": 512 * quantity.MiB, "512m": 512 * quantity.MiB, "512MB": 512 * quantity.MiB, "512 MiB": 512 * quantity.MiB,
		"1.5g": 3 * quantity.GiB / 2, "2T": 2 * quantity.TiB, "10B": 10, "10": 10, int64(4096): 4096, 4096.0: 4096,
	}
	for in, want := range good {
		if got, err := parseSize(in, 1, 16*quantity.TiB); err != nil || got != want {
			t.Errorf("parseSize(%v) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []any{"", "m", "-1m", "1e9", "1 2", "512 elephants", "0", "999999999999999t", -5.0, "0x10"} {
		if got, err := parseSize(in, 1, 16*quantity.TiB); err == nil {
			t.Errorf("parseSize(%v) = %d, want an error", in, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "168h": 168 * time.Hour} {
		if got, err := parseDuration(in, time.Millisecond, 168*time.Hour); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []any{"", "30", 30.0, "-1s", "1d", "0s", "169h", "1us", "30 s", strings.Repeat("1h", 50)} {
		if got, err := parseDuration(in, time.Millisecond, 168*time.Hour); err == nil {
			t.Errorf("parseDuration(%v) = %s, want an error", in, got)
		}
	}
	if got := quantity.DurationText(90 * time.Minute); got != "1h30m" {
		t.Errorf("brief = %q", got)
	}
}
