package webhooks

import (
	"strings"
	"time"
)

// A webhook's secrets are kept in one file: a line of the one in force, and one each of those before it that sign along
// until their grace is over, with that time behind them.

// mostEarlier bounds the secrets that sign along.
const mostEarlier = 3

// rotated is what is kept when a secret takes the place of what is kept so far.
func rotated(secret, kept string, now time.Time, grace time.Duration) string {
	lines := []string{secret}
	for line := range strings.Lines(kept) {
		earlier, until := cutUntil(line)
		if until == "" && grace > 0 {
			until = now.Add(grace).UTC().Format(time.RFC3339)
		}
		if _, err := ParseSecret(earlier); err != nil || !signsAt(until, now) {
			continue
		}
		if grace > 0 && len(lines) <= mostEarlier {
			lines = append(lines, earlier+" "+until)
		}
	}
	return strings.Join(lines, "\n")
}

// keysOf are the keys that sign at a time, the one in force first.
func keysOf(kept string, now time.Time) (keys []Key, err error) {
	for line := range strings.Lines(kept) {
		secret, until := cutUntil(line)
		if until != "" && !signsAt(until, now) {
			continue
		}
		key, err := ParseSecret(secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		_, err = ParseSecret("")
	}
	return keys, err
}

func cutUntil(line string) (secret, until string) {
	secret, until, _ = strings.Cut(strings.TrimRight(line, "\n"), " ")
	return secret, until
}

func signsAt(until string, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, until)
	return err == nil && now.Before(end)
}
