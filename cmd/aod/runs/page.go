package runs

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/egress"
)

// runPage prints a record for a person.
type runPage struct {
	page   ui.Page
	record api.Record
}

func (p runPage) show() {
	p.head()
	p.failure("error", p.record.Error)
	for _, warning := range p.record.Warnings {
		p.page.Field("warning", warning)
	}
	for _, attempt := range p.record.Attempts {
		p.page.Field("attempt", fmt.Sprintf("%d, %s%s, %s", attempt.Number, attempt.Outcome, exitText(attempt.ExitCode),
			ui.Time(attempt.FinishedAt)))
		p.failure("", attempt.Error)
	}
	var before api.State
	for _, t := range p.record.Transitions {
		p.page.Field("state", fmt.Sprintf("%s  %s", ui.Time(t.At), stateLine(t, before)))
		before = t.State
	}
	for _, f := range p.record.Files {
		p.page.Field("file", fmt.Sprintf("%s  %s  sha256:%s", f.Name, ui.Bytes(f.SizeBytes), f.SHA256))
	}
}

func (p runPage) head() {
	r := p.record
	p.page.Field("run", r.ID)
	p.page.Field("unit", ui.Joined(r.Unit, r.Kind, ui.Short(r.Version)))
	p.page.Field("outcome", ui.Joined(string(r.State.Status()), string(r.Outcome))+exitText(r.ExitCode))
	p.page.Field("waits", waitText(r.Waiting))
	p.page.Field("parent", r.Parent)
	p.page.Field("context", r.Context)
	if r.Schedule != nil {
		p.page.Field("schedule", ui.Joined(r.Schedule.Name, "planned for "+ui.Time(r.Schedule.Planned)))
	}
	p.page.Field("rerun of", r.RerunOf)
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		p.page.Field("metadata", key+"="+r.Metadata[key])
	}
	p.page.Field("created", ui.Time(r.CreatedAt)+", "+ui.Age(time.Since(r.CreatedAt))+" ago")
	if r.FinishedAt != nil {
		p.page.Field("finished", ui.Time(*r.FinishedAt))
	}
	p.page.Field("worker", r.Worker)
	p.page.Field("image", r.Image.Ref)
	p.page.Field("container", containerText(r.Container))
	p.page.Field("times", timesText(r.Timings))
	if r.Usage != nil {
		p.page.Field("usage",
			fmt.Sprintf("%.2fs of CPU, %s of memory at most", r.Usage.CPUSeconds, ui.Bytes(r.Usage.PeakMemoryBytes)))
	}
	p.page.Field("models", modelsText(r.Models))
	for _, row := range r.Egress {
		p.page.Field("egress", egressText(row))
	}
	p.page.Field("log", logText(r.Log))
}

// waitText says why a run hasn't begun.
func waitText(w *api.Waiting) string {
	if w == nil {
		return ""
	}
	text := "for " + ui.Age(time.Since(w.Since)) + ": " + w.Message
	if w.Place > 0 {
		text = fmt.Sprintf("at place %d %s", w.Place, text)
	}
	return text
}

func (p runPage) failure(name string, e *api.RunError) {
	if e == nil {
		return
	}
	what := e.Kind
	if e.Type != "" {
		what += ", " + e.Type
	}
	lines := strings.Split(e.Message, "\n")
	p.page.Field(name, what+": "+lines[0])
	for _, line := range lines[1:] {
		p.page.Field("", line)
	}
	if e.Hint != "" {
		p.page.Field("", "hint: "+e.Hint)
	}
	p.page.Out.Findings(e.Findings)
}

// artifacts prints what a run has shown: each artifact with its last name, and its files.
func (p runPage) artifacts(told iter.Seq2[api.ToldArtifact, error]) error {
	var ids []string
	shown := map[string]*shownArtifact{}
	for part, err := range told {
		if fault.Is(err, fault.NotFound) { // the server is older, and has none
			return nil
		}
		if err != nil {
			return err
		}
		if shown[part.ID] == nil || !part.Append {
			if shown[part.ID] == nil {
				ids = append(ids, part.ID)
			}
			shown[part.ID] = &shownArtifact{}
		}
		shown[part.ID].add(part)
	}
	for _, id := range ids {
		p.page.Field("artifact", ui.Joined(id, shown[id].text()))
	}
	return nil
}

// shownArtifact is an artifact as all its parts make it.
type shownArtifact struct {
	bytes int
	files []string
}

func (s *shownArtifact) add(told api.ToldArtifact) {
	for _, part := range told.Parts {
		s.bytes += len(part.Text) + len(part.Data)
		if part.File != nil {
			s.files = append(s.files, fmt.Sprintf("%s (%s)", part.File.Name, ui.Bytes(part.File.SizeBytes)))
		}
	}
}

func (s *shownArtifact) text() string {
	texts := s.files
	if s.bytes > 0 {
		texts = append([]string{ui.Bytes(int64(s.bytes))}, texts...)
	}
	return strings.Join(texts, ", ")
}

// showPushes prints the receivers that are told of the run, without their addresses.
func (p runPage) showPushes(ctx context.Context, server *client.Client) error {
	pushes, err := server.Runs.Pushes(ctx, p.record.ID)
	if fault.Is(err, fault.NotFound) {
		return nil // the server is older
	}
	for _, push := range pushes {
		p.page.Field("push", pushText(push))
	}
	return err
}

func pushText(p api.Push) string {
	text := fmt.Sprintf("%s  %d delivered", p.ID, p.Deliveries.Delivered)
	if p.Deliveries.Waiting > 0 {
		text += fmt.Sprintf(", %d to come", p.Deliveries.Waiting)
	}
	if p.GivenUpAt != nil {
		text += fmt.Sprintf(", given up %s: %s, %d lost", ui.Time(*p.GivenUpAt), p.Reason, p.Deliveries.Lost)
	}
	return text
}

// egressText is a row of a run's page.
func egressText(row api.EgressRow) string {
	to := net.JoinHostPort(row.Host, strconv.Itoa(row.Port))
	if row.Host == egress.Others {
		to = "others"
	}
	text := fmt.Sprintf("%s: %s, %s in, %s out", to, ui.Plural(int(row.Tunnels), "tunnel"), ui.Bytes(row.BytesIn),
		ui.Bytes(row.BytesOut))
	if row.Refused > 0 {
		text += fmt.Sprintf(", refused %d times", row.Refused)
	}
	return text
}

// stateLine tells waiting for the start from resting after the end, which are one state.
func stateLine(t api.Transition, before api.State) string {
	text := string(t.State.Status())
	if before == api.Cleanup {
		text = string(t.State)
	}
	if t.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", t.Attempt)
	}
	if t.Reason != "" && t.Reason != text {
		text += ": " + t.Reason
	}
	return text
}

func exitText(code *int) string {
	if code == nil {
		return ""
	}
	return fmt.Sprintf(", exit code %d", *code)
}

// containerText says how long a container waited for its run.
func containerText(c *api.Container) string {
	if c == nil {
		return ""
	}
	waited := ""
	if c.WaitedMS > 0 {
		waited = "had waited for " + ui.RoundTime(time.Duration(c.WaitedMS*float64(time.Millisecond))).String()
	}
	return ui.Joined(ui.Short(c.ID), waited)
}

func timesText(t api.Timings) string {
	var parts []string
	for _, part := range []struct {
		name string
		ms   float64
	}{
		{"queue", t.Queue},
		{"build", t.Build},
		{"create", t.Create},
		{"start", t.Start},
		{"run", t.Run},
		{"collect", t.Collect},
		{"total", t.Total},
	} {
		if took := ui.RoundTime(time.Duration(part.ms * float64(time.Millisecond))); took > 0 {
			parts = append(parts, part.name+" "+took.String())
		}
	}
	return strings.Join(parts, ", ")
}

func logText(l api.LogStats) string {
	text := ui.Bytes(l.Bytes)
	if l.Truncated {
		text += ", cut at the limit"
	}
	return text
}
