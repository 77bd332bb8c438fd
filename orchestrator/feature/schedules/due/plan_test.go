package due

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

var made = time.Date(2026, 5, 4, 10, 0, 3, 0, time.UTC)

func TestWhatIsWrongIsFoundInItsField(t *testing.T) {
	past := made.Add(-time.Hour)
	for _, c := range []struct {
		spec           api.ScheduleSpec
		pointer, words string
	}{
		{api.ScheduleSpec{}, "", "0 of cron, every and at"},
		{api.ScheduleSpec{Cron: "@daily", Every: "1h"}, "", "2 of cron, every and at"},
		{api.ScheduleSpec{Cron: "@every 1h"}, "/cron", "@every isn't taken"},
		{api.ScheduleSpec{Cron: "@reboot"}, "/cron", "isn't known"},
		{api.ScheduleSpec{Cron: "CRON_TZ=UTC 0 * * * *"}, "/cron", "zone in the expression"},
		{api.ScheduleSpec{Cron: "CRON_TZ="}, "/cron", "zone in the expression"},
		{api.ScheduleSpec{Cron: "TZ=UTC 0 * * * *"}, "/cron", "zone in the expression"},
		{api.ScheduleSpec{Cron: "0 0 L * *"}, "/cron", `"L" isn't taken`},
		{api.ScheduleSpec{Cron: "0 0 15W * *"}, "/cron", `"15W" isn't taken`},
		{api.ScheduleSpec{Cron: "0 0 * * 5#3"}, "/cron", `"5#3" isn't taken`},
		{api.ScheduleSpec{Cron: "0 0 ? * 1"}, "/cron", `"?" isn't taken`},
		{api.ScheduleSpec{Cron: "H 0 * * *"}, "/cron", `"H" isn't taken`},
		{api.ScheduleSpec{Cron: "0 0 * *"}, "/cron", "five fields"},
		{api.ScheduleSpec{Cron: "0 0 0 * * *"}, "/cron", "five fields"},
		{api.ScheduleSpec{Cron: "60 * * * *"}, "/cron", "can't be read"},
		{api.ScheduleSpec{Cron: "0 0 31 2 *"}, "/cron", "never comes"},
		{api.ScheduleSpec{Cron: "0 0 31 4,6,9,11 *"}, "/cron", "never comes"},
		{api.ScheduleSpec{Cron: "1,,2 * * * *"}, "/cron", "isn't taken"},
		{api.ScheduleSpec{Cron: strings.Repeat("1,", 200) + "1 * * * *"}, "/cron", "longer than 256 bytes"},
		{api.ScheduleSpec{Cron: "@daily", Timezone: "Europe/Nowhere"}, "/timezone", "there is no zone"},
		{api.ScheduleSpec{Cron: "@daily", Timezone: "Local"}, "/timezone", "there is no zone"},
		{api.ScheduleSpec{Cron: "@daily", Timezone: "../../etc/passwd"}, "/timezone", "there is no zone"},
		{api.ScheduleSpec{Cron: "@daily", Start: &past}, "/start", "only `every`"},
		{api.ScheduleSpec{Every: "9s"}, "/every", "9s"},
		{api.ScheduleSpec{Every: "1ns"}, "/every", "isn't a duration"},
		{api.ScheduleSpec{Every: "1h", Timezone: "UTC"}, "/timezone", "no zone"},
		{api.ScheduleSpec{At: "tomorrow"}, "/at", "as a time"},
		{api.ScheduleSpec{At: "2011-12-30T09:00", Timezone: "Pacific/Apia"}, "/at", "no such date"},
		{api.ScheduleSpec{At: "9999-12-30T09:00"}, "/at", "out of range"},
		{api.ScheduleSpec{Cron: "@daily", Missed: "some"}, "/missed", "none of the words"},
		{api.ScheduleSpec{Cron: "@daily", Overlap: "some"}, "/overlap", "none of the words"},
		{api.ScheduleSpec{Cron: "@daily", Grace: "-1h"}, "/grace", "isn't a duration"},
		{api.ScheduleSpec{Cron: "@daily", Jitter: "25h"}, "/jitter", "25h"},
		{api.ScheduleSpec{Cron: "@daily", Count: -1}, "/count", "1 to 100000"},
		{api.ScheduleSpec{Cron: "@daily", Note: strings.Repeat("ä", 1001)}, "/note", "1000 characters"},
	} {
		_, err := Read(c.spec, made)
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != fault.Input || len(known.Findings) != 1 {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		if f := known.Findings[0]; f.Pointer != c.pointer || !strings.Contains(f.Message, c.words) {
			t.Errorf("%+v: %s", c.spec, f)
		}
	}
}

func TestWhatIsTaken(t *testing.T) {
	start := made.Add(-100 * time.Second)
	future := made.Add(time.Hour)
	for _, c := range []struct {
		spec api.ScheduleSpec
		want string // the next two
	}{
		{api.ScheduleSpec{Cron: "30 2 * * 1-5"}, "2026-05-05T02:30:00Z 2026-05-06T02:30:00Z"},
		{api.ScheduleSpec{Cron: "0 0 * * sun"}, "2026-05-10T00:00:00Z 2026-05-17T00:00:00Z"},
		{api.ScheduleSpec{Cron: "0 0 * * 7"}, "2026-05-10T00:00:00Z 2026-05-17T00:00:00Z"},
		{api.ScheduleSpec{Cron: "*/20 22-23/1 1 JAN-feb *"}, "2027-01-01T22:00:00Z 2027-01-01T22:20:00Z"},
		{api.ScheduleSpec{Cron: "0 0 29 2 *"}, "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{api.ScheduleSpec{Cron: "0 0 13 * 5"}, "2026-05-08T00:00:00Z 2026-05-13T00:00:00Z"},
		{api.ScheduleSpec{Cron: "@yearly", Timezone: "Asia/Tokyo"}, "2027-01-01T00:00:00+09:00 2028-01-01T00:00:00+09:00"},
		{api.ScheduleSpec{Cron: "@monthly"}, "2026-06-01T00:00:00Z 2026-07-01T00:00:00Z"},
		{api.ScheduleSpec{Cron: "@weekly"}, "2026-05-10T00:00:00Z 2026-05-17T00:00:00Z"},
		{api.ScheduleSpec{Every: "10s"}, "2026-05-04T10:00:13Z 2026-05-04T10:00:23Z"},
		{api.ScheduleSpec{Every: "1m", Start: &start}, "2026-05-04T10:00:23Z 2026-05-04T10:01:23Z"},
		{api.ScheduleSpec{Every: "1m", Start: &future}, "2026-05-04T11:00:03Z 2026-05-04T11:01:03Z"},
		{api.ScheduleSpec{At: "2026-12-01T09:00", Timezone: "Europe/Berlin"}, "2026-12-01T09:00:00+01:00 -"},
		{api.ScheduleSpec{At: "2026-12-01T09:00+05:00"}, "2026-12-01T09:00:00+05:00 -"},
		{api.ScheduleSpec{At: "2027-03-28T02:30", Timezone: "Europe/Berlin"}, "2027-03-28T03:00:00+02:00 -"},
		{api.ScheduleSpec{At: "2020-01-01T09:00"}, "- -"},
		{api.ScheduleSpec{Every: "40m", Until: &future}, "2026-05-04T10:40:03Z -"},
	} {
		p, err := Read(c.spec, made)
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		after, got := made, ""
		for range 2 {
			next := p.Next(after)
			if next.IsZero() {
				got += "- "
				continue
			}
			got, after = got+next.Format(time.RFC3339)+" ", next
		}
		if got != c.want+" " {
			t.Errorf("%+v comes at %s, want %s", c.spec, got, c.want)
		}
	}
}

func TestTheJitterIsTheSameForTheSameName(t *testing.T) {
	p := read(t, api.ScheduleSpec{Cron: "@daily", Jitter: "10m"})
	seen := map[time.Duration]bool{}
	for _, name := range []string{"a", "b", "c", "d", "a", "b"} {
		d := p.Delay(name)
		if d < 0 || d >= 10*time.Minute || d != p.Delay(name) {
			t.Errorf("%s is late by %v", name, d)
		}
		seen[d] = true
	}
	if len(seen) != 4 {
		t.Errorf("four names have %d delays", len(seen))
	}
}

// FuzzRead has any specification read, and looks for its times.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"* * * * *", "@daily", "CRON_TZ=", "@every 1ns", "0 0 31 2 *", "0 0 29 2 1", "*-3 * * * *", "1/5 22-2 L * 5#3"} {
		f.Add(text, "Europe/Berlin", "", "")
	}
	f.Add("", "", "10s", "")
	f.Add("", "Pacific/Apia", "", "2011-12-30T09:00")
	fuzzbound.Run(f, func(t *testing.T, cron, zone, every, at string) {
		p, err := Read(api.ScheduleSpec{Cron: cron, Timezone: zone, Every: every, At: at}, made)
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v", err)
			}
			return
		}
		for after, n := made, 0; n < 50; n++ {
			next := p.Next(after)
			if next.IsZero() {
				if cron != "" && after.Year() < maxYear-mostYears {
					t.Fatalf("after %v %q has no time", after, cron)
				}
				return
			}
			if !next.After(after) {
				t.Fatalf("after %v comes %v", after, next)
			}
			after = next
		}
	})
}
