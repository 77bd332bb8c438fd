package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// talking is a stage whose attempts do what a test says while they run, until its gate opens.
func talking(do func(ctx context.Context, a *actor) error, gate <-chan struct{}) *stage {
	return &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
		if err := a.begin(); err != nil {
			return run.Result{}, err
		}
		if err := do(ctx, a); err != nil {
			return run.Result{}, err
		}
		return a.waits(ctx, gate)
	}}
}

// artifact has a run show something, as its program does in the capsule API.
func artifact(ctx context.Context, a *actor, one handoff.Artifact) error {
	for _, part := range a.Calls().(*childRuns).job.parts {
		if taker, ok := part.(interface {
			Artifact(ctx context.Context, a handoff.Artifact) error
		}); ok {
			return taker.Artifact(ctx, one)
		}
	}
	return errors.New("nothing takes artifacts")
}

// heardBy is what a run hears, as its program does in the capsule API.
func heardBy(ctx context.Context, a *actor, after int64) ([]api.HeardMessage, error) {
	for _, part := range a.Calls().(*childRuns).job.parts {
		if reader, ok := part.(interface {
			Messages(ctx context.Context, after int64) ([]api.HeardMessage, error)
		}); ok {
			return reader.Messages(ctx, after)
		}
	}
	return nil, errors.New("nobody reads messages")
}

func messagesOf(s *Service) *messages.Feature {
	found, _ := FeatureOf[*messages.Feature](s)
	return found
}

func artifactsOf(s *Service) *artifacts.Feature {
	found, _ := FeatureOf[*artifacts.Feature](s)
	return found
}

// shows is a part of an artifact that is a text.
func shows(id, text string, more, last bool) handoff.Artifact {
	return handoff.Artifact{Part: api.ArtifactEvent{ID: id, Parts: []api.Part{{Text: text}}, Append: more, Last: last}}
}

// showsFile is a part of an artifact that is a file with a content.
func showsFile(t *testing.T, id, name, content string) handoff.Artifact {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, content)
	return handoff.Artifact{Part: api.ArtifactEvent{ID: id, Parts: []api.Part{{File: &api.File{Name: name}}}}, Open: func() (handoff.File, error) {
		f, err := os.Open(path)
		return handoff.File{Name: name, Open: f, Size: int64(len(content))}, err
	}}
}

// toldOf are the events of a run of one type, as lines.
func (p *plays) toldOf(id string, kind api.EventType) (lines []string) {
	p.t.Helper()
	events, err := p.service.store.Events.Told(trusted.Context(p.t), id, string(kind), 0, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range events {
		data, err := records.EventOf(e).Decode()
		if err != nil {
			p.t.Fatal(err)
		}
		var line string
		switch data := data.(type) {
		case api.MessageEvent:
			line = string(data.Role) + " " + partsText(data.Parts)
		case api.ArtifactEvent:
			line = data.ID + " " + partsText(data.Parts)
			if data.Append {
				line += " append"
			}
			if data.Last {
				line += " last"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func partsText(parts []api.Part) string {
	var texts []string
	for _, p := range parts {
		switch {
		case p.File != nil:
			texts = append(texts, "file "+p.File.Name)
		default:
			texts = append(texts, p.Text+string(p.Data))
		}
	}
	return strings.Join(texts, "+")
}

func (p *plays) ask(sub spool.Submission) (api.Record, bool) {
	p.t.Helper()
	record, joined, err := p.service.Submit(trusted.Context(p.t), sub)
	if err != nil {
		p.t.Fatal(err)
	}
	return record, joined
}

func (p *plays) say(id, text string) error {
	_, err := messagesOf(p.service).SayOnce(trusted.Context(p.t), id, "", api.MessageEvent{Parts: []api.Part{{Text: text}}}, nil)
	return err
}

func TestARunHearsWhatIsSaidToIt(t *testing.T) {
	t.Parallel()
	gate, heard := make(chan struct{}), make(chan []api.HeardMessage, 10)
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		var after int64
		for range 2 {
			found, err := heardBy(ctx, a, after)
			if err != nil || len(found) == 0 {
				return err
			}
			after = found[len(found)-1].N
			heard <- found
		}
		return nil
	}, gate))
	files, err := p.service.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Add("doc", "a.txt", strings.NewReader("content"), 100); err != nil {
		t.Fatal(err)
	}
	first := api.MessageEvent{ID: "m1", Parts: []api.Part{{Text: "begin"}, {File: &api.File{Name: "a.txt"}}}, Metadata: json.RawMessage(`{"k":1}`)}
	record, _ := p.ask(spool.Submission{Unit: "worker", Context: "c", Message: &first, Files: files})
	if record.Context != "c" {
		t.Errorf("its context is %q", record.Context)
	}
	got := <-heard
	if len(got) != 1 || got[0].N != 2 || got[0].Role != api.RoleUser || partsText(got[0].Parts) != "begin+file a.txt" || got[0].Parts[1].File.SizeBytes != 7 || got[0].Parts[1].File.SHA256 == "" {
		t.Errorf("it began with %+v", got)
	}
	if err := p.say(record.ID, "go on"); err != nil {
		t.Fatal(err)
	}
	if got = <-heard; len(got) != 1 || partsText(got[0].Parts) != "go on" || got[0].ID == "" {
		t.Errorf("then it heard %+v", got)
	}
	close(gate)
	p.await(record.ID)
	if err := p.say(record.ID, "too late"); !fault.Is(err, fault.Conflict) {
		t.Errorf("to a run that is over: %v", err)
	}
	if err := p.say("00000000-0000-7000-8000-000000000001", "hello"); !fault.Is(err, fault.NotFound) {
		t.Errorf("to nobody: %v", err)
	}
	page, err := messagesOf(p.service).List(trusted.Context(t), record.ID, 0, 1)
	if err != nil || len(page.Messages) != 1 || page.Next == nil || *page.Next != 2 {
		t.Errorf("a page of one: %+v %v", page, err)
	}
	listed, err := p.service.Runs.List(trusted.Context(t), api.Filter{Context: "c"})
	if err != nil || len(listed.Runs) != 1 {
		t.Errorf("of the context: %+v %v", listed, err)
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate))
	id := p.submit()
	for name, m := range map[string]api.MessageEvent{
		"nothing":          {},
		"an empty part":    {Parts: []api.Part{{}}},
		"two in one":       {Parts: []api.Part{{Text: "a", Data: json.RawMessage(`1`)}}},
		"no JSON":          {Parts: []api.Part{{Data: json.RawMessage(`{`)}}},
		"a file":           {Parts: []api.Part{{File: &api.File{Name: "a"}}}},
		"another's word":   {Role: api.RoleAgent, Parts: []api.Part{{Text: "a"}}},
		"no UTF-8":         {Parts: []api.Part{{Text: "\xff"}}},
		"no such metadata": {Parts: []api.Part{{Text: "a"}}, Metadata: json.RawMessage(`[]`)},
		"too many":         {Parts: make([]api.Part, api.MaxParts+1)},
	} {
		if _, err := messagesOf(p.service).SayOnce(trusted.Context(t), id, "", m, nil); !fault.Is(err, fault.Input) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.say(id, strings.Repeat("x", api.MaxPartBytes+1)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too much: %v", err)
	}
	big := strings.Repeat("x", api.MaxPartBytes)
	for range 16<<20/api.MaxPartBytes - 1 {
		if err := p.say(id, big); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.say(id, big); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too much in all: %v", err)
	}
	p.stop()
	p.start() // it counts what is stored
	if err := p.say(id, big); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too much in all, after a restart: %v", err)
	}
	close(gate)
	p.await(id)
	for _, sub := range []spool.Submission{
		{Unit: "worker", Context: strings.Repeat("x", 257)},
		{Unit: "worker", Context: "a\nb"},
		{Unit: "worker", Key: "k", Resend: "r"},
		{Unit: "worker", Message: &api.MessageEvent{Parts: []api.Part{{File: &api.File{Name: "a"}}}}},
		{Unit: "worker", Message: &api.MessageEvent{}},
	} {
		if _, _, err := p.service.Submit(trusted.Context(t), sub); !fault.Is(err, fault.Input) {
			t.Errorf("%+v: %v", sub, err)
		}
	}
}

func TestWhatIsSaidTwiceUnderAKeyIsHeardOnce(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate))
	id := p.submit()
	m := api.MessageEvent{Parts: []api.Part{{Text: "once"}}}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := messagesOf(p.service).SayOnce(trusted.Context(t), id, "k", m, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	p.stop()
	p.start()
	if _, err := messagesOf(p.service).SayOnce(trusted.Context(t), id, "k", m, nil); err != nil {
		t.Error(err)
	}
	m.Parts = []api.Part{{Text: "another"}}
	if _, err := messagesOf(p.service).SayOnce(trusted.Context(t), id, "k", m, nil); !fault.Is(err, fault.Input) {
		t.Errorf("another message under the key: %v", err)
	}
	if diff := cmp.Diff([]string{"user once"}, p.toldOf(id, api.EventMessage)); diff != "" {
		t.Error(diff)
	}
	close(gate)
	p.await(id)
}

func TestARunShowsWhatItHasSoFar(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		all := []handoff.Artifact{shows("a", "one ", true, false), shows("a", "two", true, true), showsFile(t, "f", "d/x.txt", "first"), showsFile(t, "f", "d/x.txt", "second")}
		if a.resumed {
			all = []handoff.Artifact{shows("a", " three", true, false), shows("b", "new", true, false)}
		}
		for _, one := range all {
			one.Key = one.Part.ID + partsText(one.Part.Parts)
			if one.Open != nil {
				one.Key = ""
			}
			for range 2 { // a program repeats what was not answered
				if err := artifact(ctx, a, one); err != nil {
					return err
				}
				if one.Key == "" {
					break
				}
			}
		}
		return nil
	}, gate))
	id := p.submit()
	want := []string{"a one ", "a two append last", "f file d/x.txt", "f file d/x.txt"}
	p.untilTold(id, api.EventArtifact, len(want))
	p.stop()
	p.start()
	want = append(want, "a  three append", "b new")
	p.untilTold(id, api.EventArtifact, len(want))
	close(gate)
	p.await(id)
	if diff := cmp.Diff(want, p.toldOf(id, api.EventArtifact)); diff != "" {
		t.Error(diff)
	}
	f, file, err := artifactsOf(p.service).OpenFile(trusted.Context(t), id, "f", "d/x.txt")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(f)
	if err != nil || string(raw) != "second" || file.Name != "d/x.txt" || file.SizeBytes != 6 {
		t.Errorf("%q %+v %v", raw, file, err)
	}
	_ = f.Close()
	for _, c := range [][2]string{{"f", "d/y.txt"}, {"a", "d/x.txt"}, {"", ""}} {
		if _, _, err := artifactsOf(p.service).OpenFile(trusted.Context(t), id, c[0], c[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", c, err)
		}
	}
	page, err := artifactsOf(p.service).List(trusted.Context(t), id, 0, 4)
	if err != nil || len(page.Artifacts) != 4 || page.Next == nil {
		t.Errorf("%+v %v", page, err)
	}
	row, err := p.service.store.Runs.Get(trusted.Context(t), id)
	if err != nil || row.DiskBytes < int64(len("firstsecond")) {
		t.Errorf("%d bytes of disk, %v", row.DiskBytes, err)
	}
	if _, err := p.service.Retention.Prune(trusted.Context(t), api.PruneOptions{MaxBytes: 1}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.service.runPath(id)); !os.IsNotExist(err) {
		t.Errorf("its files are there after it was pruned: %v", err)
	}
}

func (p *plays) untilTold(id string, kind api.EventType, n int) {
	p.t.Helper()
	within(p.t, func() bool { return len(p.toldOf(id, kind)) >= n }, func() string { return strings.Join(p.toldOf(id, kind), "\n") })
}

func TestAnotherAttemptShowsAnew(t *testing.T) {
	t.Parallel()
	p := newPlays(t, &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
		if err := a.begin(); err != nil {
			return run.Result{}, err
		}
		for _, text := range []string{"x", "y"} {
			one := shows("a", text, true, false)
			one.Key = text
			if err := artifact(ctx, a, one); err != nil {
				return run.Result{}, err
			}
		}
		if a.Run.Attempt == 1 {
			return a.fails(api.CategoryTransient)
		}
		return a.succeed()
	}})
	id := p.submit()
	p.await(id)
	if diff := cmp.Diff([]string{"a x", "a y append", "a x", "a y append"}, p.toldOf(id, api.EventArtifact)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatARunShowsCountsAsStoredAndGoesWithIt(t *testing.T) {
	t.Parallel()
	const shown = 2 << 20
	var log testkit.Log
	gate := make(chan struct{})
	close(gate)
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		return artifact(ctx, a, shows("a", strings.Repeat("x", shown), false, true))
	}, gate), logged(&log))
	p.await(p.submit())
	if stats, err := p.service.Figures.Stats(trusted.Context(t)); err != nil || stats.Disk.StoredBytes < shown {
		t.Errorf("%d bytes are stored, %v", stats.Disk.StoredBytes, err)
	}
	report, err := p.service.Retention.Prune(trusted.Context(t), api.PruneOptions{MaxBytes: shown / 2})
	if err != nil || report.Runs != 1 || report.Bytes < shown || !strings.Contains(log.String(), "database has given room back") {
		t.Errorf("%+v, %v: %s", report, err, &log)
	}
	if stats, err := p.service.Figures.Stats(trusted.Context(t)); err != nil || stats.Disk.StoredBytes != 0 {
		t.Errorf("%d bytes are stored after it was pruned, %v", stats.Disk.StoredBytes, err)
	}
}

func TestAMaskedRunShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-ant-api03-0123456789abcdefghij0123456789abcdefghij"
	gate := make(chan struct{})
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		a.Masking = unit.MaskTexts
		return artifact(ctx, a, shows("a", "the key is "+secret, false, false))
	}, gate))
	id := p.submit()
	p.untilTold(id, api.EventArtifact, 1)
	if err := p.say(id, "my key is "+secret); err != nil {
		t.Fatal(err)
	}
	for _, line := range append(p.toldOf(id, api.EventArtifact), p.toldOf(id, api.EventMessage)...) {
		if strings.Contains(line, "0123456789") || !strings.Contains(line, "key is") {
			t.Errorf("it shows %q", line)
		}
	}
	close(gate)
	p.await(id)
}

func TestASubmissionThatIsSentAgainJoinsUntilItsAnswerWasDelivered(t *testing.T) {
	t.Parallel()
	p := newPlays(t, &stage{})
	sub := spool.Submission{Unit: "worker", Resend: "digest"}
	var mu sync.Mutex
	var all sync.WaitGroup
	made := map[string]int{}
	fresh := 0
	for range 8 {
		all.Go(func() {
			record, joined, err := p.service.Submit(trusted.Context(t), sub)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made[record.ID]++
			if !joined {
				fresh++
			}
		})
	}
	all.Wait()
	if len(made) != 1 || fresh != 1 {
		t.Fatalf("they made %v, %d of them new", made, fresh)
	}
	first, _ := p.ask(sub)
	p.await(first.ID)
	p.stop()
	p.start()
	if record, joined := p.ask(sub); !joined || record.ID != first.ID {
		t.Errorf("after a restart it is %s, joined %v", record.ID, joined)
	}
	if record, joined := p.ask(spool.Submission{Unit: "worker", Resend: "another"}); joined || record.ID == first.ID {
		t.Error("another digest joins it")
	}
	for range 2 {
		if err := p.service.Resends.Delivered(trusted.Context(t), first.ID, "digest"); err != nil {
			t.Fatal(err)
		}
	}
	second, joined := p.ask(sub)
	if joined || second.ID == first.ID {
		t.Error("after its answer was delivered it joins all the same")
	}
	p.await(second.ID)
}

func TestChangedRunsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(context.Context, *actor) error { return nil }, gate), func(o *Options) { o.Concurrency = 3 })
	var ids []string
	for range 6 {
		ids = append(ids, p.submit())
	}
	within(t, func() bool {
		page, err := p.service.Feed.Changed(trusted.Context(t), api.ChangedFilter{States: []api.State{api.Running}})
		return err == nil && page.Total == 3
	}, func() string { return "three don't run" })
	filter := api.ChangedFilter{Limit: 4}
	first, err := p.service.Feed.Changed(trusted.Context(t), filter)
	if err != nil || first.Total != 6 || len(first.Runs) != 4 || first.Next == "" {
		t.Fatalf("%+v %v", first, err)
	}
	close(gate)
	for _, id := range ids {
		p.await(id)
	}
	p.submit()
	filter.Cursor = first.Next
	second, err := p.service.Feed.Changed(trusted.Context(t), filter)
	if err != nil || second.Total != 6 || len(second.Runs) != 2 || second.Next != "" || second.Runs[0].State != api.Completed {
		t.Fatalf("%+v %v", second, err)
	}
	seen := map[string]bool{}
	for _, r := range append(first.Runs, second.Runs...) {
		seen[r.ID] = true
	}
	for _, id := range ids {
		if !seen[id] {
			t.Errorf("%s is on no page", id)
		}
	}
}
