package ui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// Plural writes a number of things in English.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// JSON writes a value on one line; none is "".
func JSON(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // it came from JSON
	}
	return string(raw)
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quoted writes a word so that a POSIX shell takes it as it is.
func Quoted(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Bytes formats a size for a person.
func Bytes(n int64) string { return quantity.Rounded(n) }

// Age says roughly how long ago something was.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Took is a run's duration, up to now if it hasn't ended; "" before its start.
func Took(from, to *time.Time, now time.Time) string {
	if from == nil {
		return ""
	}
	if to != nil {
		now = *to
	}
	return RoundTime(now.Sub(*from)).String()
}

// RoundTime keeps three digits or so.
func RoundTime(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// RelativePath makes a path relative if it lies below the working directory.
func RelativePath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

// Joined writes a text with its details.
func Joined(first string, rest ...string) string {
	var known []string
	for _, r := range rest {
		if r != "" {
			known = append(known, r)
		}
	}
	if len(known) == 0 {
		return first
	}
	return first + " (" + strings.Join(known, ", ") + ")"
}

// Begin is a text, or how it begins where it has more characters than most.
func Begin(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Short is the part of a digest that a person compares.
func Short(digest string) string { return digest[:min(len(digest), 16)] }

// Time writes a time as a person of this place reads it.
func Time(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }
