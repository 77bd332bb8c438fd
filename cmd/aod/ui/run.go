package ui

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

// EgressLine tells of a host that a run reaches for, or is refused.
func (o *Output) EgressLine(unit string, e api.EgressEvent) string {
	to := Printable(net.JoinHostPort(e.Host, strconv.Itoa(e.Port)))
	if e.Refused != "" {
		return fmt.Sprintf("%s %s may not reach %s (%s)", o.Style(Yellow, "refused:"), Printable(unit), to,
			Printable(e.Refused))
	}
	return o.Style(Dim, fmt.Sprintf("%s reaches %s", Printable(unit), to))
}

// ModelUsage tells what was spent on models: "5 model calls, 12.4k tokens, 71 % of the input cached, 0.021".
func ModelUsage(u api.ModelUsage) string {
	parts := []string{Plural(int(u.Calls), "model call"), Tokens(u.Charged)}
	if share := percent(u.Tokens.Cached, u.Tokens.Input); share > 0 {
		parts = append(parts, fmt.Sprintf("%d %% of the input cached", share))
	}
	if u.Cost > 0 {
		parts = append(parts, u.Cost.String())
	}
	return strings.Join(parts, ", ")
}

// percent is a part of a whole, cut off.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return int64(float64(part) / float64(whole) * 100)
}

// Tokens writes a number of tokens.
func Tokens(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM tokens", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.1fk tokens", float64(n)/1e3)
	}
	return Plural(int(n), "token")
}

// RunError prints how a run failed.
func (o *Output) RunError(unit string, e api.RunError) {
	message := Printable(e.Message)
	if e.Type != "" {
		message = Printable(e.Type) + ": " + message
	}
	o.Line("%s %s", o.Style(Red, Printable(unit)+":"), message)
	o.Findings(unsaid(e.Findings, e.Message))
	if e.Hint != "" {
		o.Line("  %s %s", o.Style(Dim, "hint:"), Printable(e.Hint))
	}
}
