package capsule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// parseDuration reads "30s", "5m" or "1h30m", from least to most.
func parseDuration(v any, least, most time.Duration) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%s has no unit", fault.Quote(fmt.Sprint(v)))
	}
	d, err := quantity.ParseDuration(s, least, most)
	if errors.Is(err, quantity.ErrRange) {
		err = fmt.Errorf("%w: from %s to %s", err, quantity.DurationText(least), quantity.DurationText(most))
	}
	return d, err
}

// parseSize reads "512MiB", "512m", "1.5g", or a number of bytes, from least to most.
func parseSize(v any, least, most int64) (int64, error) {
	s := fmt.Sprint(v)
	if n, ok := v.(float64); ok {
		s = strconv.FormatFloat(n, 'f', -1, 64)
	}
	n, err := quantity.ParseSize(s, least, most)
	if errors.Is(err, quantity.ErrRange) {
		err = fmt.Errorf("%w: from %s to %s", err, quantity.SizeText(least), quantity.SizeText(most))
	}
	return n, err
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
