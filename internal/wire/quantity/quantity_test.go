package quantity

import (
	"errors"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"512MiB": 512 * MiB, "512m": 512 * MiB, "512MB": 512 * MiB, "512 MiB": 512 * MiB, "1.5g": 3 * GiB / 2, "2T": 2 * TiB, "10B": 10, "10": 10,
		"1KB": KiB, "1kib": KiB, "16TiB": 16 * TiB, "1.0": 1,
	} {
		if got, err := ParseSize(text, 1, 16*TiB); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for text, outOfRange := range map[string]bool{
		"": false, "m": false, "-1m": false, "1e9": false, "1 2": false, "512 elephants": false, "0x10": false, "1p": false, ".5g": false, "5.": false, "1  k": false,
		"0": true, "0.9": true, "999999999999999t": true, "17t": true,
	} {
		if got, err := ParseSize(text, 1, 16*TiB); err == nil || errors.Is(err, ErrRange) != outOfRange {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1: "1B", KiB: "1KiB", 1536 * MiB: "1536MiB", 3 * TiB: "3TiB", GiB + 1: "1073741825B"} {
		if got := SizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	if got, err := ParseDuration("1h30m", 0, 2*time.Hour); err != nil || got != 90*time.Minute {
		t.Errorf("%s %v", got, err)
	}
	for text, outOfRange := range map[string]bool{"": false, "30": false, "-1s": false, "1d": false, "1us": false, "30 s": false, "3h": true, "0s": true} {
		if got, err := ParseDuration(text, time.Second, 2*time.Hour); err == nil || errors.Is(err, ErrRange) != outOfRange {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{168 * time.Hour: "168h", 90 * time.Minute: "1h30m", 5 * time.Minute: "5m", 0: "0s", 90 * time.Second: "1m30s"} {
		if got := DurationText(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
