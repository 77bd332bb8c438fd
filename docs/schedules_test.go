package docs_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
)

// The days of the table on which the clocks change, at a place that has them.
func TestTheTimesShownAreThoseOfTheDaysOnWhichClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	days := []time.Time{time.Date(2027, 3, 28, 0, 0, 0, 0, berlin), time.Date(2027, 10, 31, 0, 0, 0, 0, berlin)}
	text, _ := readGuide(t, schedulesGuide)
	shown := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|([^|]*)\\|([^|]*)\\|$").FindAllStringSubmatch(sectionOf(t, text, "When the clocks change"), -1)
	if len(shown) < 4 {
		t.Fatalf("%d expressions are shown", len(shown))
	}
	for _, m := range shown {
		for i, day := range days {
			if got := timesOn(t, m[1], day); got != strings.TrimSpace(m[2+i]) {
				t.Errorf("%s has on %s %s, not %s", m[1], day.Format(time.DateOnly), got, m[2+i])
			}
		}
	}
}

// timesOn are the times of an expression on a day.
func timesOn(t *testing.T, cron string, day time.Time) string {
	t.Helper()
	plan, err := due.Read(api.ScheduleSpec{Unit: "u", Cron: cron, Timezone: day.Location().String()}, day)
	if err != nil {
		t.Fatal(err)
	}
	var times []string
	for at := plan.Next(day.Add(-time.Second)); at.Day() == day.Day(); at = plan.Next(at) {
		times = append(times, at.Format("15:04 -07:00"))
	}
	return strings.Join(times, ", ")
}
