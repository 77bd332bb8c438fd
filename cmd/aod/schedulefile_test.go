package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/fuzzbound"
)

func TestAFileOfSchedulesIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, "a", dir, "data", "a.csv")
	write(t, "b", dir, "b.csv")
	file, err := parseSchedules("s.yaml", dir, []byte(`
# Two of them.
nightly:
  unit: report
  cron: "30 2 * * 1-5"
  timezone: Europe/Berlin
  input: {group_by: region, top: 3}
  files: {table: data/a.csv, others: [b.csv, data/a.csv]}
  metadata: {team: sales}
  until: 2027-01-01T00:00:00+01:00
  count: 5
  missed: all
once: {unit: hello, at: 2026-12-01T09:00, ask: true}
`))
	if err != nil {
		t.Fatal(err, fault.Public(err).Findings)
	}
	until := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	want := []wantedSchedule{
		{
			name: "nightly",
			spec: api.ScheduleSpec{
				Unit: "report", Cron: "30 2 * * 1-5", Timezone: "Europe/Berlin", Input: json.RawMessage(`{"group_by":"region","top":3}`),
				Metadata: map[string]string{"team": "sales"}, Until: &until, Count: 5, Missed: api.MissedAll,
			},
			files: []client.InputFile{
				{Field: "others", Path: filepath.Join(dir, "b.csv")},
				{Field: "others", Path: filepath.Join(dir, "data/a.csv")},
				{Field: "table", Path: filepath.Join(dir, "data/a.csv")},
			},
		},
		{name: "once", spec: api.ScheduleSpec{Unit: "hello", At: "2026-12-01T09:00", Ask: true}},
	}
	if diff := cmp.Diff(want, file.schedules, cmp.AllowUnexported(wantedSchedule{})); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithAFileOfSchedulesHasItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: {unit: u, cron: x, crom: y}\n":                `s.yaml:1: a: the key "crom" is not known (did you mean cron?)`,
		"a:\n  unit: u\n  evry: 5m\n  every: 5m\n":        `s.yaml:3: a: the key "evry" is not known (did you mean every?)`,
		"a:\n  unit: u\n":                                 "s.yaml:1: a: nothing says when it is due",
		"a:\n  unit: u\n  cron: x\n  at: y\n":             "s.yaml:4: a: cron and at both say when it is due",
		"a:\n  cron: x\n":                                 "s.yaml:1: a: ",
		"a:\n  unit: u\n  every: 30\n":                    "s.yaml:3: a.every: ",
		"a:\n  unit: u\n  every: soon\n":                  "s.yaml:3: a.every: ",
		"a:\n  unit: u\n  cron: x\n  missed: maybe\n":     "s.yaml:4: a.missed: ",
		"a:\n  unit: u\n  cron: x\n  count: 0\n":          "s.yaml:4: a.count: ",
		"a:\n  unit: u\n  cron: x\n  input: [1]\n":        "s.yaml:4: a.input: ",
		"a:\n  unit: u\n  cron: x\n  until: later\n":      "s.yaml:4: a.until: is not a valid date-time",
		"a:\n  unit: u\n  cron: x\n  until: 2026-01-02\n": "s.yaml:4: a.until: is not a valid date-time (write it like 2006-01-02T15:04:05Z)",
		"a:\n  unit: u\n  cron: x\n  files: {t: no}\n":    "s.yaml:4: a: there is no file ",
		"a:\n  unit: u\n  cron: x\n  files: {t: .}\n":     "s.yaml:4: a: there is no file ",
		"A b: {unit: u, cron: x}\n":                       `s.yaml:1: "A b" is no name of a schedule`,
		"a: {unit: u, cron: x}\na: {unit: u, at: x}\n":    `s.yaml:2: the key "a" stands twice`,
		"- a\n":         "s.yaml:1: it holds no names with schedules",
		"a: 5\n":        "s.yaml:1: a: ",
		"a: [\n":        "s.yaml:1: it isn't YAML",
		"a: !x {b: c}":  "s.yaml:1: ",
		"? [a]\n: b\n":  "s.yaml:1: a key must be a text",
		"a: {<<: {}}\n": "s.yaml:1: merge keys",
	} {
		_, err := parseSchedules("s.yaml", t.TempDir(), []byte(text))
		if !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var said strings.Builder
		for _, f := range fault.Public(err).Findings {
			said.WriteString(f.String() + "\n")
		}
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q: found %s want %s", text, &said, want)
		}
	}
	if file, err := parseSchedules("s.yaml", ".", []byte("# none\n")); err != nil || len(file.schedules) > 0 {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzSchedulesFile(f *testing.F) {
	f.Add("a: {unit: u, cron: '* * * * *', files: {x: [y]}, input: {a: [1]}}\n")
	f.Add("a: &x {unit: u}\nb: *x\n")
	f.Add("a: {unit: u, every: 1h, start: 2026-01-01T00:00:00Z, metadata: {a: b}}\n")
	dir := f.TempDir()
	fuzzbound.Run(f, func(t *testing.T, text string) {
		file, err := parseSchedules("s.yaml", dir, []byte(text))
		if err != nil && !fault.Is(err, fault.Input) {
			t.Errorf("%v", err)
		}
		for _, found := range file.findings {
			if found.Line < 1 || found.Message == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}

func TestASameScheduleIsLeftAlone(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wanted := wantedSchedule{spec: api.ScheduleSpec{Unit: "u", Every: "1h", Input: json.RawMessage(`{"b":1,"a":[1]}`)}}
	there := api.Schedule{ScheduleSpec: api.ScheduleSpec{
		Unit: "u", Every: "60m", Start: &start, Input: json.RawMessage(`{"a": [1], "b": 1}`), Missed: api.MissedLast, Grace: "60m",
		Overlap: api.OverlapSkip, Jitter: "0s", Timezone: "UTC", Metadata: map[string]string{},
	}}
	if got, err := wanted.change(there); got != unchanged || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for name, change := range map[string]func(*api.ScheduleSpec){
		"unit": func(s *api.ScheduleSpec) { s.Unit = "v" }, "input": func(s *api.ScheduleSpec) { s.Input = json.RawMessage(`{"a":[2],"b":1}`) },
		"metadata": func(s *api.ScheduleSpec) { s.Metadata = map[string]string{"a": "b"} }, "timeout": func(s *api.ScheduleSpec) { s.Timeout = "1m" },
		"ask": func(s *api.ScheduleSpec) { s.Ask = true }, "note": func(s *api.ScheduleSpec) { s.Note = "n" }, "every": func(s *api.ScheduleSpec) { s.Every = "2h" },
		"cron": func(s *api.ScheduleSpec) { s.Cron, s.Every = "@daily", "" }, "at": func(s *api.ScheduleSpec) { s.At, s.Every = "2026-01-01T00:00", "" },
		"timezone": func(s *api.ScheduleSpec) { s.Timezone = "Europe/Berlin" }, "start": func(s *api.ScheduleSpec) { s.Start = new(start.Add(1)) },
		"missed": func(s *api.ScheduleSpec) { s.Missed = api.MissedAll }, "grace": func(s *api.ScheduleSpec) { s.Grace = "2h" },
		"overlap": func(s *api.ScheduleSpec) { s.Overlap = api.OverlapAllow }, "jitter": func(s *api.ScheduleSpec) { s.Jitter = "1m" },
		"until": func(s *api.ScheduleSpec) { s.Until = &start }, "count": func(s *api.ScheduleSpec) { s.Count = 1 },
	} {
		other := wanted
		change(&other.spec)
		if got, err := other.change(there); got != changed || err != nil {
			t.Errorf("another %s: %s, %v", name, got, err)
		}
	}
}

func TestFilesOfASameSchedule(t *testing.T) {
	dir := t.TempDir()
	write(t, "a", dir, "a.csv")
	const sumOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	mine := []client.InputFile{{Field: "tables", Path: filepath.Join(dir, "a.csv")}}
	there := func(name, sum, pointer string) []api.File {
		return []api.File{{Name: name, SizeBytes: 1, SHA256: sum, Pointer: &pointer}}
	}
	for name, c := range map[string]struct {
		there []api.File
		same  bool
	}{
		"the same":         {there("a.csv", sumOfA, "/tables"), true},
		"in a list":        {there("2/a.csv", sumOfA, "/tables/0"), true},
		"another field":    {there("a.csv", sumOfA, "/table"), false},
		"another name":     {there("b.csv", sumOfA, "/tables"), false},
		"other content":    {there("a.csv", strings.Repeat("0", 64), "/tables"), false},
		"none that is one": {nil, false},
	} {
		if got, err := sameFiles(mine, c.there); got != c.same || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Every field of a specification is one that the comparison knows.
func TestTheComparisonKnowsEveryField(t *testing.T) {
	raw, err := json.Marshal(api.ScheduleSpec{
		Unit: "u", Input: json.RawMessage(`{}`), Metadata: map[string]string{"a": "b"}, Timeout: "1m", Ask: true, Note: "n", Cron: "x", Timezone: "x",
		Every: "1m", Start: &time.Time{}, At: "x", Missed: "x", Grace: "1m", Overlap: "x", Jitter: "1m", Until: &time.Time{}, Count: 1,
	})
	var fields map[string]any
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		t.Fatal(err)
	}
	known := plainSpec(api.ScheduleSpec{})
	for _, key := range scheduleKeys() {
		if key == "files" {
			continue
		}
		if _, ok := known[key]; !ok {
			t.Errorf("%s isn't compared", key)
		}
		if _, ok := fields[key]; !ok {
			t.Errorf("%s isn't read", key)
		}
	}
}
