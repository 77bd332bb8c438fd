package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// as is a context of a token's.
func (w *teams) as(name string) context.Context {
	return access.WithGrant(w.Context(), access.Grant{Name: name, Scopes: everyScope, Teams: []string{name}})
}

// wants asks as a token, and decodes what is answered with a status.
func wants[T any](w *teams, want int, name, method, path, body string, headers ...string) (answer T) {
	w.Helper()
	code, raw := w.asks(name, method, path, body, headers...)
	if code != want {
		w.Fatalf("%s %s as %s: %d %s", method, path, name, code, raw)
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil && raw != "" {
		w.Fatal(err)
	}
	return answer
}

func TestKeysAndDigestsOfOthersStartRunsOfTheirOwn(t *testing.T) {
	w := newTeams(t, nil)
	runs := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		body := `{"unit":"writer","input":{"text":"` + name + `"}}`
		first := wants[api.Record](w, http.StatusAccepted, name, http.MethodPost, "/v1/runs", body, "Idempotency-Key: k")
		again := wants[api.Record](w, http.StatusAccepted, name, http.MethodPost, "/v1/runs", body, "Idempotency-Key: k")
		if first.ID != again.ID {
			t.Errorf("%s has two runs by one key", name)
		}
		var resent [2]api.Record
		for i := range resent {
			var err error
			resent[i], _, err = w.service.Submit(w.as(name), spool.Submission{Unit: "writer", Resend: "digest", Context: "x"})
			w.must(err)
		}
		if resent[0].ID != resent[1].ID {
			t.Errorf("%s has two runs by one digest", name)
		}
		runs[first.ID], runs[resent[0].ID] = true, true
	}
	if len(runs) != 4 {
		t.Errorf("two teams have %d runs by a key and a digest each", len(runs))
	}
}

// A contextId is what a client says: an equal one joins nothing of others.
func TestEqualContextsOfA2AAreNotOne(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	session := wants[api.Session](w, http.StatusCreated, "a", http.MethodPost, "/v1/sessions", `{"unit":"talker"}`).ID
	send := func(name, unit, contextID string) string {
		code, answer := w.asks(name, http.MethodPost, "/a2a/"+unit+"/message:send", `{"message":{"messageId":"m","contextId":"`+contextID+`","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"returnImmediately":true}}`)
		return fmt.Sprint(code, strings.ReplaceAll(answer, contextID, "CONTEXT"))
	}
	if got, none := send("b", "talker", session), send("b", "talker", noRun); got != none {
		t.Errorf("a session of a's is for b\n%s\nand none is\n%s", got, none)
	}
	if got := send("a", "talker", session); !strings.HasPrefix(got, "200") {
		t.Errorf("its own session is for a %s", got)
	}
	type list struct {
		Tasks     []struct{ ID string }
		TotalSize int
	}
	of := func(name string) list {
		return wants[list](w, http.StatusOK, name, http.MethodGet, "/a2a/writer/tasks?contextId=a-context", "")
	}
	before := of("a")
	if got := of("b"); got.TotalSize != 0 || len(got.Tasks) != 0 {
		t.Errorf("b is told of %+v", got)
	}
	if got := send("b", "writer", "a-context"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if got := of("b"); got.TotalSize != 1 || len(got.Tasks) != 1 {
		t.Errorf("b is told of %+v", got)
	}
	if after := of("a"); after.TotalSize != before.TotalSize || before.TotalSize == 0 {
		t.Errorf("a was told of %d, and is of %d", before.TotalSize, after.TotalSize)
	}
}

// A call by gRPC is one of the token's teams, or of the one that it names.
func TestGRPCKnowsTheTeamsOfAToken(t *testing.T) {
	w := newTeams(t, nil)
	w.grant(access.Grant{Name: "both", Scopes: everyScope, Teams: []string{"a", "b"}})
	ids := map[string]string{}
	for _, name := range []string{"a", "b"} {
		ids[name] = wants[api.Record](w, http.StatusAccepted, name, http.MethodPost, "/v1/runs", `{"unit":"writer","input":{}}`).ID
	}
	client := pbv1.NewA2AServiceClient(w.conn)
	for _, c := range []struct {
		name, team, sees string
		code             codes.Code
	}{
		{"a", "", "a", codes.OK},
		{"b", "", "b", codes.OK},
		{"both", "", "ab", codes.OK},
		{"both", "b", "b", codes.OK},
		{"a", "b", "", codes.PermissionDenied},
		{"operator", "", "ab", codes.OK},
		{"operator", "a", "a", codes.OK},
	} {
		ctx := w.bearing(w.Context(), c.name)
		if c.team != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "aod-team", c.team)
		}
		list, err := client.ListTasks(ctx, &pbv1.ListTasksRequest{Tenant: "writer"})
		sees := ""
		for _, team := range []string{"a", "b"} {
			if slices.ContainsFunc(list.GetTasks(), func(task *pbv1.Task) bool { return task.GetId() == ids[team] }) {
				sees += team
			}
		}
		if code := status.Code(err); code != c.code || sees != c.sees {
			t.Errorf("%s for the team %q: %v, and sees the tasks of %q", c.name, c.team, err, sees)
		}
		code, _ := w.asks(c.name, http.MethodGet, "/a2a/writer/tasks", "", "Aod-Team: "+c.team)
		if forbidden := code == http.StatusForbidden; forbidden != (c.code == codes.PermissionDenied) {
			t.Errorf("%s for the team %q over HTTP: %d", c.name, c.team, code)
		}
	}
}

// What lies in file_roots is nobody's: with teams, whoever sees all names it.
func TestOnlyTheOperatorNamesFilesOfTheHost(t *testing.T) {
	dir := t.TempDir()
	write(t, "canary", dir, "x.txt")
	w := newTeams(t, func(c *config.Config) { c.FileRoots = []string{dir} })
	body := `{"capsule":"writer","input":{"doc":"` + filepath.Join(dir, "x.txt") + `"}}`
	for name, may := range map[string]bool{"operator": true, "a": false} {
		code, answer := w.asks(name, http.MethodPost, "/execute", body, "Accept: application/problem+json")
		if (code == http.StatusOK) != may || !may && code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	code, missing := w.asks("a", http.MethodPost, "/execute", strings.Replace(body, "x.txt", "y.txt", 1), "Accept: application/problem+json")
	if _, there := w.asks("a", http.MethodPost, "/execute", body, "Accept: application/problem+json"); code != http.StatusForbidden || missing != there {
		t.Errorf("a file that isn't there: %d %s, and one that is: %s", code, missing, there)
	}
	w.must(os.Remove(filepath.Join(w.data, "server", "tokens.json")))
	w.grant(access.Grant{Name: "alone", Scopes: everyScope[:2]})
	if code, answer := w.asks("alone", http.MethodPost, "/execute", body, "Accept: application/problem+json"); code != http.StatusOK {
		t.Errorf("without teams: %d %s", code, answer)
	}
}

// The cursors of one team lead another one to nothing but its own.
func TestCursorsOfOthersLeadToTheOwn(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	own := wants[api.Record](w, http.StatusAccepted, "b", http.MethodPost, "/v1/runs", `{"unit":"writer","input":{}}`).ID
	next := wants[api.Page](w, http.StatusOK, "a", http.MethodGet, "/v1/runs?limit=1", "").Next
	if next == nil {
		t.Fatal("a has no second page")
	}
	tasks := wants[struct{ NextPageToken string }](w, http.StatusOK, "a", http.MethodGet, "/a2a/writer/tasks?pageSize=1", "").NextPageToken
	paths := []string{"/v1/runs?cursor=" + *next, "/v1/runs?limit=1&cursor=" + *next, "/a2a/writer/tasks?pageToken=" + tasks}
	for _, list := range []string{"sessions", "schedules", "questions"} {
		places := 0
		for next := new(int64); next != nil; places++ {
			next = wants[struct{ Next *int64 }](w, http.StatusOK, "a", http.MethodGet, fmt.Sprintf("/v1/%s?limit=1&after=%d", list, *next), "").Next
			if next != nil {
				paths = append(paths, fmt.Sprintf("/v1/%s?limit=1&after=%d", list, *next))
			}
		}
		if places < 2 {
			t.Errorf("a has %d places in its %s", places, list)
		}
		for raw := range 20 { // of which one in 4096 may be taken for a place
			if code, answer := w.asks("b", http.MethodGet, fmt.Sprintf("/v1/%s?after=%d", list, raw+1), ""); strings.Contains(answer, `"id":"`) {
				t.Errorf("%s after the number %d: %d %s", list, raw+1, code, answer)
			}
		}
	}
	for _, path := range paths {
		code, answer := w.asks("b", http.MethodGet, path, "")
		if code != http.StatusOK || strings.Contains(strings.ReplaceAll(answer, own, ""), `"id":"`) || strings.Contains(answer, "alpha") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}

// A place in the queue is one among the runs of the own team.
func TestATeamIsNotToldHowManyWait(t *testing.T) {
	w := newTeams(t, func(c *config.Config) { c.Concurrency, c.QueueWait = 1, time.Millisecond*1+time.Hour })
	w.run("writer", "wait", isRunning)
	waiting := func(name string) string {
		return wants[api.Record](w, http.StatusAccepted, name, http.MethodPost, "/v1/runs", `{"unit":"writer","input":{"text":"wait"}}`).ID
	}
	waiting("a")
	id := waiting("b")
	for name, place := range map[string]int{"b": 1, "operator": 1} {
		one := wants[api.Record](w, http.StatusOK, name, http.MethodGet, "/v1/runs/"+id, "").Waiting
		list := wants[api.Page](w, http.StatusOK, name, http.MethodGet, "/v1/runs?limit=1", "").Runs[0].Waiting
		for _, told := range []*api.Waiting{one, list} {
			if told == nil || told.Place != place || told.Message == "" {
				t.Errorf("%s is told %+v", name, told)
			}
		}
	}
	stats := wants[api.Stats](w, http.StatusOK, "b", http.MethodGet, "/v1/stats", "")
	if stats.Queued != 1 || stats.Busy != 0 {
		t.Errorf("b is told of %d that wait and %d that go on", stats.Queued, stats.Busy)
	}
}

func TestATeamPrunesItsOwn(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	wants[api.Record](w, http.StatusAccepted, "b", http.MethodPost, "/v1/runs", `{"unit":"writer","input":{}}`)
	testkit.Eventually(t, "b's run is over, and what it had is gone", func() bool {
		return wants[api.PruneReport](w, http.StatusOK, "b", http.MethodPost, "/v1/prune", `{"older_than":"0s","dry_run":true}`).Runs == 1
	})
	before := w.all("a")
	if code, answer := w.asks("b", http.MethodPost, "/v1/prune", `{"images":true}`); code != http.StatusForbidden {
		t.Errorf("images: %d %s", code, answer)
	}
	for _, body := range []string{`{"older_than":"0s","dry_run":true}`, `{"max_bytes":1,"dry_run":true}`, `{"older_than":"0s"}`} {
		if report := wants[api.PruneReport](w, http.StatusOK, "b", http.MethodPost, "/v1/prune", body); report.Runs != 1 || report.Sessions != 0 {
			t.Errorf("%s: %+v", body, report)
		}
	}
	for what, after := range w.all("a") {
		if before[what] != after {
			t.Errorf("%s was\n%s\nand is\n%s", what, before[what], after)
		}
	}
}

// What follows the news hears of its own, of the units that it may know of, and of nothing else.
func TestTheNewsOfATeam(t *testing.T) {
	w := newTeams(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	follow := func(name string) *bufio.Scanner {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/events", nil)
		w.must(err)
		request.Header.Set("Authorization", "Bearer "+w.keys[name])
		response, err := http.DefaultClient.Do(request)
		w.must(err)
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") { // the cursor
		}
		return lines
	}
	streams := map[string]*bufio.Scanner{"a": follow("a"), "b": follow("b")}
	w.fill()
	last := map[string]string{"a": w.run("writer", "", isOver)}
	last["b"] = wants[api.Record](w, http.StatusAccepted, "b", http.MethodPost, "/v1/runs", `{"unit":"writer","input":{}}`).ID
	heard := map[string]string{}
	for name, lines := range streams {
		for lines.Scan() && !strings.Contains(heard[name], last[name]) {
			heard[name] += lines.Text() + "\n"
		}
	}
	for noun, ids := range w.has {
		for _, id := range ids {
			full := strings.HasPrefix(id, "alpha") || noun == "schedule" || noun == "webhook" // the name in the team, and what has no news
			if strings.Contains(heard["b"], id) || !full && !strings.Contains(heard["a"], id) {
				t.Errorf("of the %s %s a heard\n%s\nand b\n%s", noun, id, heard["a"], heard["b"])
			}
		}
	}
}

// The operator's rules for a unit hold by its short name, too, and tell nobody else that there is one.
func TestRulesOfAUnitHoldByItsShortName(t *testing.T) {
	w := newTeams(t, func(c *config.Config) {
		c.Unit = map[string]config.UnitConfig{
			"a.alpha-unit": {A2A: config.UnitA2A{Enabled: true, Tokens: []string{"nobody"}}, Modes: []string{"none"}},
		}
	})
	w.fill()
	send := func(name, unit string) string {
		_, answer := w.asks(name, http.MethodPost, "/a2a/"+unit+"/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{}}]}}`)
		return answer
	}
	get := func(name, unit string) string {
		_, answer := w.asks(name, http.MethodGet, "/a2a/"+unit+"/tasks/"+noRun, "")
		return answer
	}
	for _, unit := range w.has["unit"][:2] {
		if answer := send("a", unit); !strings.Contains(answer, "may not ask") {
			t.Errorf("A2A asks %s: %s", unit, answer)
		}
		code, answer := w.asks("a", http.MethodPost, "/agents/"+unit+"/run/sync", strings.ReplaceAll(toAgents, "{unit}", unit))
		if code != http.StatusForbidden {
			t.Errorf("the agent contract asks %s: %d %s", unit, code, answer)
		}
		if got, none := send("b", unit), send("b", "omega"); got != none {
			t.Errorf("b is told %s, and of none %s", got, none)
		}
		if got, none := get("b", unit), get("b", "omega"); got != none {
			t.Errorf("b is told %s, and of none %s", got, none)
		}
	}
}

// Names that begin with a team's are that team's: nobody else takes them, or hears that they are taken.
func TestNamesOfATeamsSchedules(t *testing.T) {
	w := newTeams(t, nil)
	w.fill()
	w.add("default", access.Run, access.Read)
	const spec = `{"unit":"writer","every":"1000h"}`
	put := func(name, schedule string) (int, string) {
		code, answer := w.asks(name, http.MethodPut, "/v1/schedules/"+schedule, spec)
		return code, strings.NewReplacer("alpha", "NAME", "omega", "NAME").Replace(answer)
	}
	code, taken := put("default", "a.alpha-plan")
	if _, free := put("default", "a.omega-plan"); code != http.StatusForbidden || taken != free {
		t.Errorf("a name that is taken: %d %s, and one that is free: %s", code, taken, free)
	}
	var made api.Schedule
	code, answer := put("operator", "a.omega-plan")
	w.must(json.Unmarshal([]byte(answer), &made))
	if code != http.StatusCreated || made.Owner == nil || made.Owner.Team != "a" {
		t.Errorf("the operator's is %d %s", code, answer)
	}
	wants[api.Schedule](w, http.StatusOK, "a", http.MethodGet, "/v1/schedules/omega-plan", "")
}

// What a file of schedules doesn't name is removed where it is the own, by whichever name the file has the others.
func TestSchedulesAreAppliedToTheOwnTeam(t *testing.T) {
	w := newTeams(t, nil)
	dir := t.TempDir()
	apply := func(name, file string) string {
		write(t, file, dir, name+".yaml")
		write(t, w.keys[name], dir, name+".token")
		code, out, told := command(t, t.Context(), "--server", w.url, "--token-file", filepath.Join(dir, name+".token"), "schedule", "apply", "--prune", "-f", filepath.Join(dir, name+".yaml"))
		if code != 0 {
			t.Fatalf("%d %s %s", code, out, told)
		}
		return out
	}
	const spec = ": {unit: writer, every: 1000h}\n"
	for name, files := range map[string][2]string{"a": {"keep" + spec + "drop" + spec, "keep" + spec}, "operator": {"keep" + spec + "drop" + spec, "keep" + spec}, "b": {"keep" + spec + "b.drop" + spec, "b.keep" + spec}} {
		apply(name, files[0])
		apply(name, files[1])
	}
	var names []string
	for _, s := range wants[api.SchedulePage](w, http.StatusOK, "operator", http.MethodGet, "/v1/schedules", "").Schedules {
		names = append(names, s.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a.keep", "b.keep", "keep"}) {
		t.Errorf("there are the schedules %q", names)
	}
}
