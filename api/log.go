package api

import "time"

// LogEntry is one line that a unit wrote. Its text is the unit's own: whoever shows it
// on a terminal has to take out control characters.
type LogEntry struct {
	Time    time.Time `json:"time"`
	Stream  string    `json:"stream"` // "stdout" or "stderr"
	Text    string    `json:"text"`
	Attempt int       `json:"attempt"`
}
