package config

import (
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
	sizeUnits    = map[string]int64{"": 1, "k": kib, "m": mib, "g": gib, "t": tib}
)

// duration is a time span between two bounds, which belong to it. Only 0 needs no unit.
type duration struct {
	into        *time.Duration
	least, most time.Duration
}

func (v duration) kind() string   { return "duration" }
func (v duration) String() string { return brief(*v.into) }
func (v duration) hint() string {
	return fmt.Sprintf("write a duration with its unit, such as 30s, 5m or 1h30m; from %s to %s", brief(v.least), brief(v.most))
}

func (v duration) set(text string) error {
	if text == "0" {
		text = "0s"
	}
	if !durationRule.MatchString(text) || len(text) > fault.MaxQuoted {
		return fmt.Errorf("%s isn't a duration", fault.Quote(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < v.least || d > v.most {
		return fmt.Errorf("%s is out of range", text)
	}
	*v.into = d
	return nil
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

// size is a number of bytes between two bounds, which belong to it.
type size struct {
	into        *int64
	least, most int64
}

func (v size) kind() string   { return "size" }
func (v size) String() string { return sizeText(*v.into) }
func (v size) hint() string {
	return fmt.Sprintf("write a size, such as 512MiB or 2GiB; from %s to %s", sizeText(v.least), sizeText(v.most))
}

func (v size) set(text string) error {
	m := sizeRule.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return fmt.Errorf("%s isn't a size", fault.Quote(text))
	}
	number, err := strconv.ParseFloat(m[1], 64)
	bytes := number * float64(sizeUnits[m[2]])
	if err != nil || bytes < float64(v.least) || bytes > float64(v.most) {
		return fmt.Errorf("%s is out of range", fault.Quote(text))
	}
	*v.into = int64(math.Round(bytes))
	return nil
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
