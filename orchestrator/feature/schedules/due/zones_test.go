package due

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// The zones, and two years in each in which something happens to the clock.
var changing = map[string]int{"Europe/Berlin": 2025, "America/New_York": 2025, "Australia/Lord_Howe": 2025, "Pacific/Apia": 2011}

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func read(t testing.TB, spec api.ScheduleSpec) *Plan {
	t.Helper()
	p, err := Read(spec, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return p
}

func TestTwoYearsOfEachZoneAreThoseOfAClock(t *testing.T) {
	for name, year := range changing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone := location(t, name)
			from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			to := from.AddDate(2, 0, 0)
			all := minutes(zone, from, to)
			for _, text := range []string{
				"30 2 * * *", "15 2,3 * * *", "45 1,2 * * *", "0 0 * * *", "0 9 30 * *",
				"0,30 0,1,2,3,4,22,23 * * 0,6", "0 12 13 * 5", "30 * * * *", "* 2 1 4,10 *",
			} {
				t.Run(text, func(t *testing.T) {
					agrees(t, read(t, api.ScheduleSpec{Cron: text, Timezone: name}), reference(expressionOf(t, text), all), from, to)
				})
			}
		})
	}
}

func TestWhereTheClockChanges(t *testing.T) {
	for _, c := range []struct{ zone, cron, after, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"Europe/Berlin", "30 * * * *", "2026-10-25T01:40:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00"},
		{"Europe/Berlin", "30 */1 * * *", "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00 2026-03-29T04:30:00+02:00"},
		{"Europe/Berlin", "@hourly", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"America/New_York", "15 2 8 3 *", "2026-03-01T00:00:00-05:00", "2026-03-08T03:00:00-04:00 2027-03-08T02:15:00-05:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"Pacific/Apia", "0 9 * * *", "2011-12-29T08:00:00-10:00", "2011-12-29T09:00:00-10:00 2011-12-31T09:00:00+14:00"},
		{"Pacific/Apia", "0 9 30 12 *", "2011-12-29T08:00:00-10:00", "2012-12-30T09:00:00+14:00"},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00-03:00", "2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
	} {
		t.Run(c.zone+" "+c.cron, func(t *testing.T) {
			p := read(t, api.ScheduleSpec{Cron: c.cron, Timezone: c.zone})
			at, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range strings.Fields(c.want) {
				at = p.Next(at)
				if got := at.Format(time.RFC3339); got != want {
					t.Fatalf("%s comes, want %s", got, want)
				}
			}
		})
	}
}

// FuzzNext holds days around any moment against the reference, in any of the zones.
func FuzzNext(f *testing.F) {
	names := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"}
	for zone := range names {
		for _, hour := range []int{2000, 6600, 8640, 11000} {
			f.Add(uint8(zone), uint16(hour), uint64(1<<30), uint64(1<<2), uint32(0), uint16(0), uint8(0))
			f.Add(uint8(zone), uint16(hour), uint64(1|1<<45), uint64(0), uint32(1<<4), uint16(0), uint8(1))
		}
	}
	fuzzbound.Run(f, func(t *testing.T, zone uint8, hour uint16, minute, hours uint64, day uint32, month uint16, weekday uint8) {
		name := names[int(zone)%len(names)]
		e := expression{}
		for i, set := range []uint64{minute, hours, uint64(day) << 1, uint64(month) << 1, uint64(weekday)} {
			least, most := []int{0, 0, 1, 1, 0}[i], []int{59, 23, 31, 12, 6}[i]
			for n := least; n <= most; n++ {
				if has(set, n) {
					e.fields[i] = append(e.fields[i], n)
				}
			}
		}
		e.text = textOf(e)
		p, err := Read(api.ScheduleSpec{Cron: e.text, Timezone: name}, time.Time{})
		if err != nil {
			return // it never comes
		}
		from := time.Date(changing[name], 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hour%17520) * time.Hour)
		to := from.AddDate(0, 0, 5)
		all := minutes(location(t, name), from.AddDate(0, 0, -3), to.AddDate(0, 0, 3))
		var want []time.Time
		for _, at := range reference(e, all) {
			if at.After(from) && at.Before(to) {
				want = append(want, at)
			}
		}
		agrees(t, p, want, from, to)
	})
}

func textOf(e expression) string {
	var fields []string
	for _, set := range e.fields {
		if set == nil {
			fields = append(fields, "*")
			continue
		}
		fields = append(fields, strings.ReplaceAll(strings.Trim(fmt.Sprint(set), "[]"), " ", ","))
	}
	return strings.Join(fields, " ")
}
