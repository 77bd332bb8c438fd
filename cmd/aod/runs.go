package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

func (a *app) runsCommand() *cobra.Command {
	var flags listFlags
	var tree, models bool
	var call int64
	cmd := &cobra.Command{
		Use:   "runs [ID]",
		Short: "Show all that is known of a run, or list all runs",
		Long: `Show a run with its states, attempts, error, files, usage and times; with --json the
record as it is, with the input and the result. Without an ID list the runs: those of the
server, as aod ps -a, and without --server the last ones of aod run on this machine.`,
		Example: "  aod runs 0198c0de-…\n  aod runs 0198c0de-… --json | jq .output\n  aod runs 0198c0de-… --tree\n" +
			"  aod runs --unit hello",
		Args: atMostOne("the id of a run, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (models || call != 0) {
				return a.showModels(cmd.Context(), args[0], call, flags.json)
			}
			if len(args) == 1 {
				return a.showRun(cmd.Context(), args[0], flags.json, tree)
			}
			flags.all = true
			return a.listAll(cmd.Context(), flags)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&models, "models", false, "list what it asked models: tokens, cost, time")
	cmd.Flags().Int64Var(&call, "model", 0, "print what it asked with its model call of this number, and the answer")
	cmd.Flags().BoolVar(&tree, "tree", false, "draw the tree of the runs that it called")
	return cmd
}

// atMostOne accepts one argument or none.
func atMostOne(what string) cobra.PositionalArgs { return between(0, 1, what) }

func (a *app) showRun(ctx context.Context, id string, asJSON, tree bool) error {
	past, server, err := a.past(id)
	if err != nil {
		return err
	}
	record := past.Record
	if server != nil {
		if record, err = server.Run(ctx, id); err != nil {
			return err
		}
	}
	if asJSON {
		return a.stdout.json(record)
	}
	if tree {
		return a.showTree(ctx, server, record)
	}
	page := runPage{out: a.stdout, record: record}
	page.show()
	if server == nil {
		return nil
	}
	if err := page.artifacts(server.Artifacts(ctx, id)); err != nil {
		return err
	}
	return page.showPushes(ctx, server)
}

// runPage prints a record for a person.
type runPage struct {
	out    *output
	record api.Record
}

func (p runPage) show() {
	p.head()
	p.failure("error", p.record.Error)
	for _, warning := range p.record.Warnings {
		p.field("warning", warning)
	}
	for _, attempt := range p.record.Attempts {
		p.field("attempt", fmt.Sprintf("%d, %s%s, %s", attempt.Number, attempt.Outcome, exitText(attempt.ExitCode),
			timeText(attempt.FinishedAt)))
		p.failure("", attempt.Error)
	}
	var before api.State
	for _, t := range p.record.Transitions {
		p.field("state", fmt.Sprintf("%s  %s", timeText(t.At), stateLine(t, before)))
		before = t.State
	}
	for _, f := range p.record.Files {
		p.field("file", fmt.Sprintf("%s  %s  sha256:%s", f.Name, bytesText(f.SizeBytes), f.SHA256))
	}
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
		p.field("artifact", joined(id, shown[id].text()))
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
			s.files = append(s.files, fmt.Sprintf("%s (%s)", part.File.Name, bytesText(part.File.SizeBytes)))
		}
	}
}

func (s *shownArtifact) text() string {
	texts := s.files
	if s.bytes > 0 {
		texts = append([]string{bytesText(int64(s.bytes))}, texts...)
	}
	return strings.Join(texts, ", ")
}

// showPushes prints the receivers that are told of the run, without their addresses.
func (p runPage) showPushes(ctx context.Context, server *client.Client) error {
	pushes, err := server.Pushes(ctx, p.record.ID)
	if fault.Is(err, fault.NotFound) {
		return nil // the server is older
	}
	for _, push := range pushes {
		p.field("push", pushText(push))
	}
	return err
}

func pushText(p api.Push) string {
	text := fmt.Sprintf("%s  %d delivered", p.ID, p.Deliveries.Delivered)
	if p.Deliveries.Waiting > 0 {
		text += fmt.Sprintf(", %d to come", p.Deliveries.Waiting)
	}
	if p.GivenUpAt != nil {
		text += fmt.Sprintf(", given up %s: %s, %d lost", timeText(*p.GivenUpAt), p.Reason, p.Deliveries.Lost)
	}
	return text
}

func (p runPage) head() {
	r := p.record
	p.field("run", r.ID)
	p.field("unit", joined(r.Unit, r.Kind, short(r.Version)))
	p.field("outcome", joined(string(r.State.Status()), string(r.Outcome))+exitText(r.ExitCode))
	p.field("parent", r.Parent)
	p.field("context", r.Context)
	if r.Schedule != nil {
		p.field("schedule", joined(r.Schedule.Name, "planned for "+timeText(r.Schedule.Planned)))
	}
	p.field("rerun of", r.RerunOf)
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		p.field("metadata", key+"="+r.Metadata[key])
	}
	p.field("created", timeText(r.CreatedAt)+", "+ageText(time.Since(r.CreatedAt))+" ago")
	if r.FinishedAt != nil {
		p.field("finished", timeText(*r.FinishedAt))
	}
	p.field("image", r.Image.Ref)
	p.field("container", containerText(r.Container))
	p.field("times", timesText(r.Timings))
	if r.Usage != nil {
		p.field("usage",
			fmt.Sprintf("%.2fs of CPU, %s of memory at most", r.Usage.CPUSeconds, bytesText(r.Usage.PeakMemoryBytes)))
	}
	p.field("models", modelsText(r.Models))
	for _, row := range r.Egress {
		p.field("egress", egressText(row))
	}
	p.field("log", logText(r.Log))
}

// field prints a line, or none if the text is empty.
func (p runPage) field(name, text string) {
	if text != "" {
		p.out.line("%s %s", p.out.style(dim, fmt.Sprintf("%-9s", name)), cell(text))
	}
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
	p.field(name, what+": "+lines[0])
	for _, line := range lines[1:] {
		p.field("", line)
	}
	if e.Hint != "" {
		p.field("", "hint: "+e.Hint)
	}
	p.out.findings(e.Findings)
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

// joined writes a text with its details.
func joined(first string, rest ...string) string {
	var known []string
	for _, r := range rest {
		if r != "" {
			known = append(known, r)
		}
	}
	if len(known) == 0 {
		return first
	}
	return first + " (" + strings.Join(known, ", ") + ")"
}

func exitText(code *int) string {
	if code == nil {
		return ""
	}
	return fmt.Sprintf(", exit code %d", *code)
}

// short is the part of a digest that a person compares.
func short(digest string) string { return digest[:min(len(digest), 16)] }

func timeText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }

// containerText says how long a container waited for its run.
func containerText(c *api.Container) string {
	if c == nil {
		return ""
	}
	waited := ""
	if c.WaitedMS > 0 {
		waited = "had waited for " + roundTime(time.Duration(c.WaitedMS*float64(time.Millisecond))).String()
	}
	return joined(short(c.ID), waited)
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
		if took := roundTime(time.Duration(part.ms * float64(time.Millisecond))); took > 0 {
			parts = append(parts, part.name+" "+took.String())
		}
	}
	return strings.Join(parts, ", ")
}

func logText(l api.LogStats) string {
	text := bytesText(l.Bytes)
	if l.Truncated {
		text += ", cut at the limit"
	}
	return text
}
