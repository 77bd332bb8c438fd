package servicetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/runtime"
)

// killScenes are those of the crash table that have no goldens: what they store has the form of others.
var killScenes = map[string]func(t testing.TB) *scene{
	"feature": featureScene,
	"memory":  memoryScene,
	"loop":    loopScene,
	"chain":   chainScene,
	"due":     dueScene,
}

// loopScene has a flow that visits a node twice, and has branches, which are given its file.
func loopScene(testing.TB) *scene {
	return &scene{
		options: []servicetest.Option{servicetest.Flow("stamps", "concurrency: 1\n", `
start: first
nodes:
  first: {set: {rounds: 0}, next: again}
  again:
    run: worker
    max_visits: 2
    with: {mark: again, file: again.txt}
    set: {doc: "${{ out.file }}", rounds: "${{ state.rounds + 1 }}"}
    action: '${{ state.rounds < 1 ? "again" : "on" }}'
    next: {again: again, on: both, exhausted: end}
  both:
    branches:
      left: {run: worker, with: {mark: left, file: left.txt, doc: "${{ state.doc }}"}}
      right: {run: worker, with: {mark: right, file: right.txt, doc: "${{ state.doc }}"}}
    set: {left: "${{ out.left.file }}", right: "${{ out.right.file }}"}
output: {left: "${{ state.left }}", right: "${{ state.right }}", rounds: "${{ state.rounds }}"}
`)},
		begin: func(h *servicetest.Harness) { h.Await(h.Submit("stamps", map[string]any{})) },
		goOn:  func(*servicetest.Harness) {},
		judge: stepsAreDone,
	}
}

// stepsAreDone holds that no step of a flow was left.
func stepsAreDone(h *servicetest.Harness) {
	h.Helper()
	for _, row := range readRows(h)["steps"] {
		if row["state"] != string(api.DoneStep) {
			h.Errorf("step %v is %v", row["address"], row["state"])
		}
	}
}

// chainScene has a run that calls another one of its unit, and so on. All share one slot.
func chainScene(testing.TB) *scene {
	const links = 3
	link := func(ctx context.Context, box servicetest.Sandbox) int {
		var in struct{ N int }
		if box.Input(&in) != nil {
			return 99
		}
		below := struct {
			Output struct{ Links int }
		}{}
		if in.N > 1 {
			call := servicetest.JSON(map[string]any{"target": "link", "args": map[string]int{"n": in.N - 1}})
			status, answer, _ := strings.Cut(box.Ask(ctx, "POST", "/handoff", "call", call), " ")
			if ctx.Err() != nil {
				return 137
			}
			if err := json.Unmarshal([]byte(answer), &below); status != "200" || err != nil {
				_, _ = fmt.Fprintln(box.Stdout, status, answer, err)
				return 1
			}
		}
		_ = os.WriteFile(filepath.Join(box.Path("/io/output"), "link"), []byte{'x'}, 0o600)
		box.Output(map[string]int{"links": 1 + below.Output.Links})
		return 0
	}
	return &scene{
		options: []servicetest.Option{
			servicetest.Capsule("link", "recursion: 2\nlimits: {timeout: 2h}\n", servicetest.AnyContract, link),
			servicetest.Tools("link", "- {name: link, capsule: link}\n"),
			servicetest.Set(func(s *servicetest.Settings) { s.Concurrency = 1 }),
		},
		begin: func(h *servicetest.Harness) {
			root := h.Await(h.Submit("link", map[string]int{"n": links}))
			if want := fmt.Sprintf(`{"links":%d}`, links); string(root.Output) != want {
				h.Fatalf("%s", servicetest.JSON(root))
			}
		},
		goOn: func(*servicetest.Harness) {},
	}
}

// dueScene has schedules that are due one after the other, also while no process is there.
func dueScene(testing.TB) *scene {
	names := []string{"a", "b", "c"}
	s := &scene{goOn: func(*servicetest.Harness) {}, begins: true}
	s.begin = func(h *servicetest.Harness) {
		of, _ := orchestrator.FeatureOf[*schedules.Scheduler](h.Service)
		for n, name := range names {
			spec := api.ScheduleSpec{
				Unit: "worker", Input: servicetest.JSON(servicetest.Orders{Mark: name}), Missed: api.MissedAll,
			}
			err := error(fault.New(fault.Input, "it has no time yet"))
			for soon := 200 * time.Millisecond; fault.Is(err, fault.Input) && soon < time.Minute; soon *= 2 { // else it is over
				spec.At = time.Now().Add(time.Duration(1+n) * soon).UTC().Format(time.RFC3339Nano)
				_, _, err = of.Put(access.WithServer(context.Background()), name, spec, nil)
			}
			if err != nil {
				h.Fatal(err)
			}
		}
		occurOnce(h)
	}
	s.judge = occurOnce
	return s
}

// occurOnce waits until each schedule has had its time, and holds that it has one run, which did well.
func occurOnce(h *servicetest.Harness) {
	h.Helper()
	runs := map[string]int{}
	h.Within("each schedule has its run", func() bool {
		rows := readRows(h)
		clear(runs)
		for _, row := range rows["runs"] {
			var record api.Record
			if err := json.Unmarshal(servicetest.JSON(row["record"]), &record); err != nil {
				h.Fatal(err)
			}
			if record.Schedule != nil && record.Outcome == api.Success {
				runs[record.Schedule.Name]++
			}
		}
		return len(runs) >= len(rows["schedules"]) && rests(h)
	})
	rows := readRows(h)
	if total := len(rows["schedules"]); len(rows["runs"]) != total || len(rows["occurrences"]) != total {
		h.Errorf("%d schedules have %d runs, %d occurrences", total, len(rows["runs"]), len(rows["occurrences"]))
	}
}

// memoryScene has a run whose first attempt keeps a value and is killed. The second one finds it.
func memoryScene(testing.TB) *scene {
	var harness *servicetest.Harness
	recall := func(ctx context.Context, box servicetest.Sandbox) int {
		attempt := box.Spec.Labels[runtime.LabelAttempt]
		answer := box.Ask(ctx, "GET", "/memory?key=a%2Fb", "", nil)
		if strings.HasPrefix(answer, "404 ") {
			answer = box.Ask(ctx, "PUT", "/memory?key=a%2Fb", "", servicetest.JSON(map[string]string{"value": "of attempt " + attempt}))
		}
		if attempt == "1" {
			go killRun(harness, box.Spec.Labels[runtime.LabelRun])
			<-ctx.Done()
			return 137
		}
		box.Output(map[string]string{"kept": answer})
		return 0
	}
	return &scene{
		options: []servicetest.Option{
			servicetest.Capsule("recalls", "retries: 1\nlimits: {timeout: 2h}\n", servicetest.AnyContract, recall),
		},
		begin: func(h *servicetest.Harness) {
			harness = h
			record := h.Await(h.Submit("recalls", map[string]any{}))
			if want := `{"kept":"200 {\"value\":\"of attempt 1\"}\n"}`; string(record.Output) != want {
				h.Fatalf("%s", servicetest.JSON(record))
			}
		},
		goOn: func(*servicetest.Harness) {},
	}
}

// killRun kills the container of a run, as somebody outside does, unless AOD removes it just then.
func killRun(h *servicetest.Harness, id string) {
	ctx := context.Background()
	found, _ := h.Engine.ContainersByLabel(ctx, map[string]string{runtime.LabelRun: id})
	for _, c := range found {
		_ = h.Engine.Kill(ctx, c.ID)
	}
}
