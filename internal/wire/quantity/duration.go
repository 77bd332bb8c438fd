package quantity

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// DurationPattern is what ParseDuration takes, as a regular expression of RE2 and of JSON
// Schema.
const DurationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`

var durationRule = lazyregexp.New(DurationPattern)

// ParseDuration reads "30s", "5m" or "1h30m", from least to most. The error quotes the
// text; ErrRange is in its chain where the text is a duration.
func ParseDuration(text string, least, most time.Duration) (time.Duration, error) {
	if !durationRule().MatchString(text) || len(text) > fault.MaxQuoted {
		return 0, fmt.Errorf("%s isn't a duration", fault.Quote(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("%s %w", text, ErrRange)
	}
	return d, nil
}

// DurationText writes a duration without the parts that are zero: "168h", not "168h0m0s".
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
