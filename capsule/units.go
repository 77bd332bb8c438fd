package capsule

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// The powers of 1024. As everywhere around containers, "512m", "512MB" and "512MiB"
// all mean the same.
const (
	kib int64 = 1 << (10 * (iota + 1))
	mib
	gib
	tib
)

var (
	durationRule = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
	sizeRule     = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?:([kmgt])(?:i?b)?|b)?$`)
)

var sizeUnits = map[string]int64{"": 1, "k": kib, "m": mib, "g": gib, "t": tib}

// parseDuration reads "30s", "5m" or "1h30m", from least to most.
func parseDuration(v any, least, most time.Duration) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%s has no unit", fault.Quote(fmt.Sprint(v)))
	}
	if !durationRule.MatchString(s) || len(s) > fault.MaxQuoted {
		return 0, fmt.Errorf("%s isn't a duration", fault.Quote(s))
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s is out of range: from %s to %s", s, brief(least), brief(most))
	}
	return d, nil
}

// brief writes a duration without the parts that are zero: "168h", not "168h0m0s".
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseSize reads "512MiB", "512m", "1.5g", or a number of bytes, from least to most.
func parseSize(v any, least, most int64) (int64, error) {
	s := fmt.Sprint(v)
	if n, ok := v.(float64); ok {
		s = strconv.FormatFloat(n, 'f', -1, 64)
	}
	m := sizeRule.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, fmt.Errorf("%s isn't a size", fault.Quote(s))
	}
	number, err := strconv.ParseFloat(m[1], 64)
	bytes := number * float64(sizeUnits[m[2]])
	if err != nil || bytes < float64(least) || bytes > float64(most) {
		return 0, fmt.Errorf("%s is out of range: from %s to %s", fault.Quote(s), sizeText(least), sizeText(most))
	}
	return int64(math.Round(bytes)), nil
}

// sizeText writes a size in the largest unit that divides it.
func sizeText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{tib, "TiB"}, {gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// isUnitValue reports whether a JSON value may hold a size or a duration at all; what
// may not is the schema's to report.
func isUnitValue(v any) bool {
	switch v.(type) {
	case string, json.Number, float64, int, int64:
		return true
	}
	return false
}
