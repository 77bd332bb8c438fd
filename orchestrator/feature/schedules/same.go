package schedules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
)

// same reports whether a schedule means what a specification does, and has the files.
func (c storedSchedule) same(spec api.ScheduleSpec, files []file) bool {
	return reflect.DeepEqual(plainInput(c.spec.Input), plainInput(spec.Input)) &&
		reflect.DeepEqual(plainSpec(c.spec), plainSpec(spec)) && slices.Equal(c.files, files)
}

// plainInput is an input as values; without one, an empty object.
func plainInput(raw json.RawMessage) (input any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&input) != nil {
		return map[string]any{}
	}
	return input
}

// plainSpec is a specification without its input, with its defaults, in one of the ways in which it
// can be written.
func plainSpec(s api.ScheduleSpec) api.ScheduleSpec {
	s.Input = nil
	if len(s.Metadata) == 0 {
		s.Metadata = nil
	}
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	s.Timezone = cmp.Or(s.Timezone, time.UTC.String())
	s.Missed, s.Grace = cmp.Or(s.Missed, api.MissedLast), plainTime(cmp.Or(s.Grace, due.DefaultGrace.String()))
	s.Overlap, s.Jitter = cmp.Or(s.Overlap, api.OverlapSkip), plainTime(cmp.Or(s.Jitter, "0s"))
	s.Timeout, s.Every = plainTime(s.Timeout), plainTime(s.Every)
	s.Start, s.Until = moment(s.Start), moment(s.Until)
	return s
}

// plainTime writes a duration in one way.
func plainTime(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return text
}

func moment(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
