// Package quantity reads and writes sizes and durations as people write them in settings, in agent.yaml and at the
// command line.
//
// Sizes go by powers of 1024, as everywhere around containers: "512m", "512MB" and "512MiB" mean the same.
//
// It must not know what is measured.
package quantity

import (
	"errors"
	"fmt"

	"github.com/docker/go-units"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// Sizes in bytes.
const (
	KiB int64 = units.KiB
	MiB int64 = units.MiB
	GiB int64 = units.GiB
	TiB int64 = units.TiB
)

// ErrRange is why a size or a duration is refused that is none of those asked for.
var ErrRange = errors.New("is out of range")

// sizeRule is narrower than go-units: no signs, no exponents, nothing beyond TiB.
var sizeRule = lazyregexp.New(`(?i)^[0-9]{1,15}(\.[0-9]{1,9})? ?([kmgt](i?b)?|b)?$`)

// ParseSize reads "512MiB", "512m", "1.5g" or a number of bytes, from least to most bytes.
// Parts of a byte are dropped. The error quotes the text; ErrRange is in its chain where
// the text is a size.
func ParseSize(text string, least, most int64) (int64, error) {
	if !sizeRule().MatchString(text) {
		return 0, fmt.Errorf("%s isn't a size", fault.Quote(text))
	}
	bytes, err := units.RAMInBytes(text)
	if err != nil || bytes < least || bytes > most {
		return 0, fmt.Errorf("%s %w", fault.Quote(text), ErrRange)
	}
	return bytes, nil
}

// SizeText writes a size in the largest unit that divides it: "1536MiB", not "1.5GiB".
func SizeText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// Rounded writes a size as people read it, to a tenth of its unit: "1.5 KiB".
func Rounded(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 3 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[prefix])
}

// Smaller returns the smaller of two bounds, of which 0 is none.
func Smaller[T ~int64](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
