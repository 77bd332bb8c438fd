package schedules

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

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
		"A b: {unit: u, cron: x}\n":                       `s.yaml:1: "A b" is not a valid schedule name`,
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

// Every field of a file is one of a specification.
func TestEveryFieldOfAFileIsRead(t *testing.T) {
	raw, err := json.Marshal(api.ScheduleSpec{
		Unit: "u", Input: json.RawMessage(`{}`), Metadata: map[string]string{"a": "b"}, Timeout: "1m", Ask: true, Note: "n", Cron: "x", Timezone: "x",
		Every: "1m", Start: &time.Time{}, At: "x", Missed: "x", Grace: "1m", Overlap: "x", Jitter: "1m", Until: &time.Time{}, Count: 1,
	})
	var fields map[string]any
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		t.Fatal(err)
	}
	for _, key := range scheduleKeys() {
		if key == "files" {
			continue
		}
		if _, ok := fields[key]; !ok {
			t.Errorf("%s isn't read", key)
		}
	}
}
