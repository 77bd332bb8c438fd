package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/changes"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// command is what a line that begins with / does.
type command struct {
	name, argument, help string
	do                   func(t *talk, ctx context.Context, argument string) error
}

// commands are in the order of the help. It is a function since /help knows them all.
func commands() []command {
	return []command{
		{"/files", "[DIR]", "the files of the last turn; with a directory they are written there", (*talk).files},
		{"/cost", "", "tokens and cost of the last turn, and of all so far", (*talk).cost},
		{"/diff", "", "what the agent has changed in its workspace so far", (*talk).diff},
		{"/retry", "", "the last message again, as a new turn", (*talk).retry},
		{"/answer", "ANSWER", "answer what the agent asks; the next line alone does, too", (*talk).answer},
		{"/close", "", "end the session, or leave the conversation", (*talk).close},
		{"/help", "", "these commands", (*talk).help},
	}
}

func commandHelp() string {
	var text strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&text, "  %-15s  %s\n", strings.TrimSpace(c.name+" "+c.argument), c.help)
	}
	return strings.TrimRight(text.String(), "\n")
}

// command acts on a line that begins with /. What fails is told, and doesn't end the conversation.
func (t *talk) command(ctx context.Context, line string) {
	name, argument, _ := strings.Cut(line, " ")
	var known []string
	for _, c := range commands() {
		if c.name == name {
			t.view.settle()
			if err := c.do(t, ctx, strings.TrimSpace(argument)); err != nil {
				t.refused(err)
			}
			return
		}
		known = append(known, c.name)
	}
	t.refused(fault.New(fault.Input, "there is no command %s", fault.Quote(name)).
		WithHint("the commands are %s", strings.Join(known, ", ")))
}

func (t *talk) help(context.Context, string) error {
	t.env.Err.Line("%s", commandHelp())
	return nil
}

func (t *talk) close(ctx context.Context, _ string) error {
	var err error
	if t.with.session != "" {
		_, err = t.server.Sessions.Close(ctx, t.with.session)
	}
	t.over = err == nil
	return err
}

func (t *talk) diff(ctx context.Context, _ string) error {
	if t.with.session == "" {
		return fault.New(fault.Conflict, "%s has no workspace", t.with.unit).WithHint("/files lists what it made")
	}
	return changes.Diff(ctx, t.env, t.with.session, changes.DiffFlags{})
}

func (t *talk) answer(ctx context.Context, text string) error {
	if text == "" {
		return fault.New(fault.Input, "/answer needs an answer").WithHint("/answer allow, for example")
	}
	q, err := questions.Of(ctx, t.server, t.run)
	if err != nil {
		return err
	}
	if len(q.Answers) == 0 {
		return fault.New(fault.Conflict, "nothing is asked")
	}
	return questions.Say(ctx, t.server, q, chosen(q, text))
}

func (t *talk) retry(ctx context.Context, _ string) error {
	if t.message == "" {
		return fault.New(fault.Conflict, "there is no message to give again")
	}
	t.turn(ctx, t.message)
	return nil
}

// last is the record of the last turn.
func (t *talk) last(ctx context.Context) (api.Record, error) {
	if t.run == "" {
		return api.Record{}, fault.New(fault.Conflict, "there was no turn yet")
	}
	return t.server.Runs.Get(ctx, t.run)
}

func (t *talk) files(ctx context.Context, dir string) error {
	record, err := t.last(ctx)
	if err != nil {
		return err
	}
	if len(record.Files) == 0 {
		t.env.Note("the last turn has no files")
		return nil
	}
	if dir != "" {
		written, err := t.server.Files.Download(ctx, record.ID, record.Files, dir)
		for _, f := range written {
			t.env.Err.Line("%s", ui.Cell(ui.RelativePath(f.Path)))
		}
		return err
	}
	for _, f := range record.Files {
		t.env.Err.Line("%s %s", ui.Cell(f.Name), t.env.Err.Style(ui.Dim, ui.Bytes(f.SizeBytes)))
	}
	t.env.Note("/files DIR writes them to a directory; they are at %s/v1/runs/%s/files/NAME", t.server.Server(),
		ui.Printable(record.ID))
	return nil
}

// maxCosts bounds the turns that /cost looks at.
const maxCosts = 200

func (t *talk) cost(ctx context.Context, _ string) error {
	record, err := t.last(ctx)
	if err != nil {
		return err
	}
	var one, all spent
	one.add(record)
	turns := 0
	for turn, err := range t.server.Runs.List(ctx, t.with.filter()) {
		if err != nil {
			return err
		}
		if turns++; turns > maxCosts {
			break
		}
		record, err := t.server.Runs.Get(ctx, turn.ID)
		if err != nil {
			return err
		}
		all.add(record)
	}
	t.env.Err.Line("the last turn: %s", one)
	whole := "all of it, " + ui.Plural(turns, "turn")
	if turns > maxCosts {
		whole = fmt.Sprintf("the last %d turns", maxCosts)
	}
	t.env.Err.Line("%s: %s", whole, all)
	return nil
}

// spent is what turns took: what was counted on the way to models, and what the program tells itself.
type spent struct {
	models api.ModelUsage // of the turns themselves, but what is charged is with all that they called
	called bool           // which took some of it
	dollar float64
	tokens map[string]int64 // that the program tells, by its names
}

// Bounds of what a program tells of its tokens.
const (
	maxCounts    = 16
	maxCountName = 64
)

func (s *spent) add(r api.Record) {
	if total := r.Models.Total(); total != nil {
		s.models.Calls += r.Models.Calls
		s.models.Tokens.Input += r.Models.Tokens.Input
		s.models.Tokens.Cached += r.Models.Tokens.Cached
		s.models.Charged += total.Charged
		s.models.Cost += total.Cost
		s.called = s.called || r.Models.Tree != nil
	}
	if cost, err := r.CostUSD.Float64(); err == nil {
		s.dollar += cost
	}
	var told map[string]any
	_ = json.Unmarshal(r.AgentUsage, &told) // it may be of another form
	for _, name := range sortedNames(told) {
		n, isNumber := told[name].(float64)
		if !isNumber || len(name) > maxCountName || !strings.HasSuffix(strings.ToLower(name), "tokens") {
			continue
		}
		if s.tokens == nil {
			s.tokens = map[string]int64{}
		}
		if _, known := s.tokens[name]; known || len(s.tokens) < maxCounts {
			s.tokens[name] += int64(n)
		}
	}
}

// String implements fmt.Stringer.
func (s spent) String() string {
	var parts, told []string
	if s.called {
		parts = append(parts, ui.ModelUsage(s.models)+" with what it called")
	} else if s.models.Calls > 0 {
		parts = append(parts, ui.ModelUsage(s.models))
	}
	for _, name := range sortedNames(s.tokens) {
		told = append(told, ui.Cell(name)+" "+strconv.FormatInt(s.tokens[name], 10))
	}
	if s.dollar > 0 {
		told = append(told, strconv.FormatFloat(s.dollar, 'g', 6, 64)+" USD")
	}
	if len(told) > 0 {
		parts = append(parts, "the agent tells "+strings.Join(told, ", "))
	}
	if len(parts) == 0 {
		return "nothing is told of its cost"
	}
	return strings.Join(parts, "; ")
}
