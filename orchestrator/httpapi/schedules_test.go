package httpapi

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const never = `"at":"2098-12-01T09:00"` // as far as a test goes

func TestAScheduleOverHTTP(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	const to = "/v1/schedules/nightly"
	made := s.do("PUT", to, `{"unit":"actor","input":{"do":"files"},"cron":"30 2 * * 1-5","timezone":"Europe/Berlin","note":"n","metadata":{"team":"a"}}`).wants(t, 201)
	if made.Header.Get("Location") != to {
		t.Errorf("Location %q", made.Header.Get("Location"))
	}
	schedule := decode[api.Schedule](t, made)
	if schedule.Name != "nightly" || schedule.State != api.ScheduleCreated || schedule.Next == nil || schedule.Fired != 0 || schedule.Note != "n" {
		t.Errorf("made: %+v", schedule)
	}
	s.do("PUT", to, `{"unit":"actor","input":{"do":"files"},`+never+`}`).wants(t, 200)
	got := decode[api.Schedule](t, s.do("GET", to, "").wants(t, 200))
	if got.Cron != "" || got.At == "" || got.Note != "" || string(got.Input) != `{"do":"files"}` {
		t.Errorf("replaced: %+v", got)
	}

	if page := decode[api.SchedulePage](t, s.do("GET", "/v1/schedules", "").wants(t, 200)); len(page.Schedules) != 1 || page.Next != nil {
		t.Errorf("listed: %+v", page)
	}
	if times := decode[api.ScheduledTimes](t, s.do("GET", to+"/next?n=3", "").wants(t, 200)); len(times.Times) != 1 {
		t.Errorf("next: %+v", times)
	}
	if paused := decode[api.Schedule](t, s.do("POST", to+"/pause", "").wants(t, 200)); paused.State != api.SchedulePaused {
		t.Errorf("paused: %+v", paused)
	}
	if resumed := decode[api.Schedule](t, s.do("POST", to+"/resume", "").wants(t, 200)); resumed.State != api.ScheduleCreated {
		t.Errorf("resumed: %+v", resumed)
	}

	record := decode[api.Record](t, s.do("POST", to+"/run?wait=3m", "").wants(t, 200))
	if record.Outcome != api.Success || record.Schedule == nil || record.Schedule.Name != "nightly" {
		t.Errorf("run: %+v", record)
	}
	history := decode[api.OccurrencePage](t, s.do("GET", to+"/occurrences", "").wants(t, 200))
	if len(history.Occurrences) != 1 || history.Occurrences[0].Run != record.ID || !history.Occurrences[0].Manual {
		t.Errorf("history: %+v", history)
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs?schedule=nightly", "").wants(t, 200)); len(page.Runs) != 1 || page.Runs[0].ID != record.ID {
		t.Errorf("its runs: %+v", page)
	}
	if page := decode[api.Page](t, s.do("GET", "/v1/runs?schedule=other", "").wants(t, 200)); len(page.Runs) != 0 {
		t.Errorf("runs of another one: %+v", page)
	}

	s.do("DELETE", to, "").wants(t, 204)
	s.do("GET", to, "").wants(t, 404)
	s.do("DELETE", to, "").wants(t, 404)
	s.do("GET", "/v1/runs/"+record.ID, "").wants(t, 200)
}

// Of schedules that must be new, one has the name in the end, and everybody is told whose it is.
func TestOfSchedulesThatMustBeNewOneIsMade(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	const to = "/v1/schedules/one"
	body := func(n int) string { return fmt.Sprintf(`{"unit":"actor","note":"%d",`+never+`}`, n) }
	answers := make([]answer, 8)
	var all sync.WaitGroup
	for n := range answers {
		all.Go(func() { answers[n] = s.do("PUT", to, body(n), "If-None-Match: *") })
	}
	all.Wait()
	got := decode[api.Schedule](t, s.do("GET", to, "").wants(t, 200))
	for n, a := range answers {
		if got.Note == strconv.Itoa(n) {
			a.wants(t, 201)
			continue
		}
		if problem := decode[httpwire.Problem](t, a.wants(t, 412)); problem.Code != fault.Exists.String() {
			t.Errorf("%+v", problem)
		}
	}

	mine, _ := strconv.Atoi(got.Note)
	s.do("PUT", to, body(mine), "If-None-Match: *").wants(t, 200) // it was sent again, say
	s.do("PUT", to, body(mine+1), `If-None-Match: "a"`).wants(t, 400)
	s.do("PUT", to, body(mine+1)).wants(t, 200)
}

func TestADryRunSaysWhatAPutWouldDo(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	const to, dry = "/v1/schedules/one", "/v1/schedules/one?dry_run=true"
	would := func(body string, header ...string) api.ScheduleChange {
		t.Helper()
		planned := decode[api.PlannedSchedule](t, s.do("PUT", dry, body, header...).wants(t, 200))
		if planned.Name != "one" {
			t.Errorf("it speaks of %q", planned.Name)
		}
		return planned.Change
	}
	hourly := `{"unit":"actor","every":"1h"}`
	if got := would(hourly); got != api.ScheduleMade {
		t.Errorf("a new one is to be %s", got)
	}
	s.do("GET", to, "").wants(t, 404)
	s.do("PUT", to, hourly).wants(t, 201)
	if got := would(`{"every":"60m","unit":"actor","jitter":"0s"}`, "If-None-Match: *"); got != api.ScheduleUnchanged {
		t.Errorf("the same is to be %s", got)
	}
	if got := would(`{"unit":"actor","every":"2h"}`); got != api.ScheduleChanged {
		t.Errorf("another one is to be %s", got)
	}
	body, header := formOf(t, part{"schedule", "", `{"unit":"actor","every":"1h","input":{"do":"files"}}`}, part{"doc", "f", "x"})
	if got := would(body, header); got != api.ScheduleChanged {
		t.Errorf("one with a file is to be %s", got)
	}
	s.spoolIsEmpty(t)
	s.do("PUT", dry, `{"unit":"actor","every":"2h"}`, "If-None-Match: *").wants(t, 412)
	s.do("PUT", dry, `{"unit":"nobody","every":"2h"}`).wants(t, 404)
	s.do("PUT", dry, `{"unit":"actor","every":"2s"}`).wants(t, 422)
	s.do("PUT", to+"?dry_run=maybe", hourly).wants(t, 400)
	s.do("PUT", to+"?dry=true", hourly).wants(t, 400)
	if got := decode[api.Schedule](t, s.do("GET", to, "").wants(t, 200)); got.Every != "1h" || !got.ChangedAt.Equal(got.CreatedAt) {
		t.Errorf("it was changed: %+v", got)
	}
}

func TestTimesAreToldBeforeThereIsASchedule(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	times := decode[api.ScheduledTimes](t, s.do("POST", "/v1/schedules/preview?n=2", `{"cron":"0 9 * * *","timezone":"Europe/Berlin"}`).wants(t, 200)).Times
	if len(times) != 2 || times[1].Sub(times[0]) > 25*time.Hour {
		t.Errorf("%v", times)
	}
	if _, offset := times[0].Zone(); offset != 3600 && offset != 7200 {
		t.Errorf("the offset is %d s", offset)
	}
	// The word isn't a reserved one.
	s.do("GET", "/v1/schedules/preview", "").wants(t, 404)
	s.do("PUT", "/v1/schedules/preview", `{"unit":"actor",`+never+`}`).wants(t, 201)
	s.do("GET", "/v1/schedules/preview", "").wants(t, 200)
	s.do("POST", "/v1/schedules/preview", `{`+never+`}`).wants(t, 200)
}

func TestSchedulesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.PayloadBytes = 4 << 10 })
	for name, content := range unitFiles {
		write(t, filepath.Join(s.sources, "off", name), strings.Replace(content, "name: actor", "name: off", 1))
	}
	s.do("POST", "/v1/units/off/disable", "").wants(t, 200)
	for name, c := range map[string]struct {
		status     int
		body, says string
	}{
		"no unit":                  {400, `{` + never + `}`, "names no unit"},
		"a unit that isn't there":  {404, `{"unit":"nobody",` + never + `}`, ""},
		"a disabled unit":          {409, `{"unit":"off",` + never + `}`, "disabled"},
		"no time":                  {422, `{"unit":"actor"}`, "cron, every and at"},
		"two times":                {422, `{"unit":"actor","every":"1h",` + never + `}`, "cron, every and at"},
		"a broken expression":      {422, `{"unit":"actor","cron":"61 * * * *"}`, "/cron"},
		"six fields":               {422, `{"unit":"actor","cron":"0 0 * * * *"}`, "/cron"},
		"@every":                   {422, `{"unit":"actor","cron":"@every 1h"}`, "/cron"},
		"a zone in the expression": {422, `{"unit":"actor","cron":"CRON_TZ=Asia/Tokyo 0 0 * * *"}`, "/cron"},
		"a day that never comes":   {422, `{"unit":"actor","cron":"0 0 31 2 *"}`, "/cron"},
		"an unknown zone":          {422, `{"unit":"actor","cron":"@daily","timezone":"Mars/Olympus"}`, "/timezone"},
		"below 10 seconds":         {422, `{"unit":"actor","every":"9s"}`, "/every"},
		"no duration":              {422, `{"unit":"actor","every":"soon"}`, "/every"},
		"a time in the past":       {422, `{"unit":"actor","at":"2001-01-01T00:00"}`, "/at"},
		"no policy":                {422, `{"unit":"actor","missed":"maybe",` + never + `}`, "/missed"},
		"a negative count":         {422, `{"unit":"actor","count":-1,` + never + `}`, "/count"},
		"a long note":              {422, `{"unit":"actor","note":"` + strings.Repeat("n", 1001) + `",` + never + `}`, "/note"},
		"metadata":                 {422, `{"unit":"actor","metadata":{"A":"b"},` + never + `}`, ""},
		"an input against it":      {422, `{"unit":"actor","input":{"do":1},` + never + `}`, "/do"},
		"an input that is a list":  {422, `{"unit":"actor","input":[],` + never + `}`, ""},
		"an unknown field":         {400, `{"unit":"actor","crom":"@daily"}`, "not known"},
		"a field in capitals":      {400, `{"Unit":"actor",` + never + `}`, "not known"},
		"a number":                 {400, `{"unit":"actor","every":30}`, `\"every\"`},
		"no time at all":           {400, `{"unit":"actor","every":"1h","start":"later"}`, `\"start\"`},
		"a field twice":            {400, `{"unit":"actor","unit":"actor",` + never + `}`, ""},
		"no JSON":                  {400, `{"unit"`, ""},
		"a list":                   {400, `[]`, ""},
		"too large":                {413, `{"unit":"actor","note":"` + strings.Repeat("n", 100<<10) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do("PUT", "/v1/schedules/x", c.body, "Content-Type: application/json").wants(t, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("no %q in %s", c.says, a.body)
			}
		})
	}
	s.do("PUT", "/v1/schedules/x", `{"unit":"actor"}`, "Content-Type: text/plain").wants(t, 400)
	s.do("PUT", "/v1/schedules/A%20b", `{"unit":"actor",`+never+`}`).wants(t, 422)
	s.do("GET", "/v1/schedules/A%20b", "").wants(t, 404)
	for _, path := range []string{"/next", "/occurrences"} {
		s.do("GET", "/v1/schedules/x"+path, "").wants(t, 404)
	}
	for _, verb := range []string{"/pause", "/resume", "/run"} {
		s.do("POST", "/v1/schedules/x"+verb, "").wants(t, 404)
	}
	for _, query := range []string{"/x/next?n=0", "/x/next?n=101", "/x/next?m=1", "?limit=0", "?before=1", "/x/occurrences?after=x"} {
		s.do("GET", "/v1/schedules"+query, "").wants(t, 400)
	}
	s.do("POST", "/v1/schedules/preview", `{"cron":"x"}`).wants(t, 422)
	s.do("POST", "/v1/schedules/preview?n=1000", `{"cron":"@daily"}`).wants(t, 400)
	if page := decode[api.SchedulePage](t, s.do("GET", "/v1/schedules", "").wants(t, 200)); page.Schedules == nil || len(page.Schedules) > 0 {
		t.Errorf("%+v", page)
	}
}

func TestAScheduleWithFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	body, header := formOf(t, part{"doc", "../a/b.txt", "the content"}, part{"schedule", "", `{"unit":"actor","input":{"do":"read"},` + never + `}`})
	made := decode[api.Schedule](t, s.do("PUT", "/v1/schedules/files", body, header).wants(t, 201))
	if len(made.Files) != 1 || made.Files[0].Name != "b.txt" || made.Files[0].Pointer == nil || *made.Files[0].Pointer != "/doc" {
		t.Errorf("%+v", made.Files)
	}
	for range 2 { // each run has them
		record := decode[api.Record](t, s.do("POST", "/v1/schedules/files/run?wait=3m", "").wants(t, 200))
		if got := string(record.Output); got != `{"got":"the content","n":1}` {
			t.Errorf("output %s", got)
		}
	}
	s.spoolIsEmpty(t)
	replaced := decode[api.Schedule](t, s.do("PUT", "/v1/schedules/files", `{"unit":"actor",`+never+`}`).wants(t, 200))
	if len(replaced.Files) > 0 {
		t.Errorf("it kept %+v", replaced.Files)
	}

	spec := part{"schedule", "", `{"unit":"actor",` + never + `}`}
	for name, c := range map[string]struct {
		status int
		parts  []part
	}{
		"no schedule":      {400, []part{{"doc", "f", "x"}}},
		"two schedules":    {400, []part{spec, spec}},
		"a broken one":     {400, []part{{"schedule", "", "{"}, {"doc", "f", "x"}}},
		"an unknown field": {400, []part{{"schedule", "", `{"units":"actor"}`}, {"doc", "f", "x"}}},
		"a part of a run":  {400, []part{spec, {"unit", "", "actor"}}},
		"no such field":    {422, []part{spec, {"nofield", "f", "x"}}},
		"a workspace":      {422, []part{spec, {"workspace", "p.tar", "x"}}},
		"a bad expression": {422, []part{{"schedule", "", `{"unit":"actor","cron":"x"}`}, {"doc", "f", "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			body, header := formOf(t, c.parts...)
			s.do("PUT", "/v1/schedules/other", body, header).wants(t, c.status)
			s.spoolIsEmpty(t)
		})
	}
	s.do("GET", "/v1/schedules/other", "").wants(t, 404)
}

func FuzzSchedule(f *testing.F) {
	form, header := formOf(f, part{"schedule", "", `{"unit":"u","cron":"@daily"}`}, part{"doc", "f", "x"})
	f.Add(strings.TrimPrefix(header, "Content-Type: "), form)
	f.Add("application/json", `{"unit":"u","input":{"a":[1]},"every":"30s","start":"2026-01-01T00:00:00Z","count":3}`)
	f.Add("application/json", `{"unit":"u","at":"2026-01-01T00:00","metadata":{"a":"b"},"ask":true,"until":null}`)
	s := newServer(f, func(o *Options) { o.UploadBytes, o.PayloadBytes = 4<<10, 1<<10 })
	fuzzbound.Run(f, func(t *testing.T, contentType, body string) {
		if strings.ContainsAny(contentType, "\r\n\x00") {
			return
		}
		for path, method := range map[string]string{"/v1/schedules/x": "PUT", "/v1/schedules/preview": "POST"} {
			r := request(method, path, body)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", contentType)
			w := record(s.api.Handler(), r)
			refused := w.Code >= 400 && w.Code < 500 && w.Header().Get("Content-Type") == httpwire.TypeProblem
			if !refused && (method == "PUT" || w.Code != 200) { // there is no unit u
				t.Errorf("%s: %d %s\n%s", method, w.Code, w.Body, s.log)
			}
		}
		s.spoolIsEmpty(t)
	})
}
