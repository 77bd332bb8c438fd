// Package questions is `aod questions` and `aod answer`: what runs ask people, here and on a server. It must not know
// the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package questions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Command is `aod questions`.
func Command(env *cli.Env) *cobra.Command {
	var asJSON, mine bool
	cmd := &cobra.Command{
		Use:   "questions [RUN]",
		Short: "List what runs on a server ask people",
		Long: `List the questions that runs on a server have open, the oldest first; of a RUN all that it
has asked, with who answered what. A flow that waits for an answer has no container and no
slot, a capsule keeps its container and lends its slot to others. A question may name who alone
answers it; with --mine those are listed that name your token, or a team of it.`,
		Example: "  aod questions\n  aod questions --mine\n  aod questions 0198c0de-…\n" +
			"  aod questions --json | jq -r .id",
		Args: cli.AtMostOne("the id of a run"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			all := server.Questions.List(ctx, "")
			switch {
			case mine && len(args) > 0:
				return fault.New(fault.Input, "--mine lists what is open, of all runs").WithHint("leave the run out")
			case mine:
				all = server.Questions.Mine(ctx)
			case len(args) > 0:
				all = server.Questions.All(ctx, args[0])
			}
			_, err := cli.List(env, all, asJSON, "nothing is asked",
				func(q api.Question) { showQuestion(env, q) })
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each question as a JSON object on a line")
	cmd.Flags().BoolVar(&mine, "mine", false, "only open ones that name your token or its team as who answers")
	return cmd
}

// showQuestion prints a question with the command that answers it.
func showQuestion(env *cli.Env, q api.Question) {
	env.Out.Line("%s", env.Out.Style(ui.Bold, ui.Printable(q.Text)))
	env.Out.Line("  %s, %s of %s, asked %s ago%s", ui.Printable(q.Run), ui.Printable(cmp.Or(string(q.Kind), q.Address)),
		ui.Printable(q.Unit), ui.Age(time.Since(q.AskedAt)), untilText(q.Until))
	showShown(env.Out, shownOf(q.Show))
	switch {
	case q.Answered != nil:
		env.Out.Line("  %s", answeredText(*q.Answered))
		return
	case q.ClosedAt != nil:
		env.Out.Line("  closed %s ago, without an answer", ui.Age(time.Since(*q.ClosedAt)))
		return
	}
	if len(q.Approvers) > 0 {
		env.Out.Line("  answered by %s alone", ui.Printable(strings.Join(q.Approvers, ", ")))
	}
	if q.IsForOthers() {
		return
	}
	for _, answer := range q.Answers {
		if q.Kind == api.QuestionInput && answer == handoff.Reply {
			answer = "'…'" // what is said
		}
		env.Out.Line("  %s", env.Out.Style(ui.Dim, "aod answer "+q.ID+" "+ui.Printable(answer)))
	}
}

// answeredText tells who answered what. By is what they say of themselves, so the token stands beside it.
func answeredText(a api.Answered) string {
	text := "answered " + ui.Printable(a.Action) + " " + ui.Age(time.Since(a.At)) + " ago"
	if a.By != "" {
		text += ", as " + ui.Printable(a.By) + " by their own word"
	}
	if a.Token != "" {
		text += ", with the token " + ui.Printable(a.Token)
	}
	if a.Note != "" {
		text += ": " + ui.Printable(fault.Clip(a.Note, maxNote))
	}
	return text
}

// maxNote bounds what is shown of a note, in bytes.
const maxNote = 500

func untilText(until *time.Time) string {
	if until == nil {
		return ""
	}
	return ", open for " + ui.Age(time.Until(*until))
}

func shownOf(raw json.RawMessage) map[string]any {
	var shown map[string]any
	_ = json.Unmarshal(raw, &shown) // nothing is shown otherwise
	return shown
}

// showShown prints what a question shows, shortly.
func showShown(out *ui.Output, shown map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		text, isText := shown[name].(string)
		if !isText {
			raw, _ := json.Marshal(shown[name])
			text = string(raw)
		}
		const most = 2000
		out.Line("  %s %s", out.Style(ui.Dim, ui.Printable(name)+":"),
			strings.ReplaceAll(fault.Clip(ui.Printable(text), most), "\n", "\n    "))
	}
}

// AnswerFlags are what an answer has beside its action.
type AnswerFlags struct {
	set  []string
	note string
	by   string
}

func (f *AnswerFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.set, "set", "s", nil,
		"fill in a field of the question's form: `key=value`; may be repeated")
	cmd.Flags().StringVar(&f.note, "note", "", "a word on the answer, which is kept with it")
	cmd.Flags().StringVar(&f.by, "by", "", "who answers")
}

// AnswerCommand is `aod answer`.
func AnswerCommand(env *cli.Env) *cobra.Command {
	var flags AnswerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN|QUESTION ANSWER",
		Short: "Answer what a run on a server asks",
		Long: `Answer a question of a run on a server: the first answer counts, and is stored before the run
goes on. A run stands for its only open question. To a program that asks for something, ANSWER is
what you say: a text, or a JSON object where the question has a form.`,
		Example: "  aod answer 0198c0de-… approve --note \"looks good\"\n" +
			"  aod answer 0198c0de-… revise --set remarks=\"shorter\"",
		Args: cli.Exactly(2, "the id of a run or of a question, and an answer"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return Answer(ctx, env, server, args[0], args[1], flags)
		}),
	}
	flags.register(cmd)
	return cmd
}

// ShortAnswerCommand answers with an action that is the command's name.
func ShortAnswerCommand(env *cli.Env, action string) *cobra.Command {
	var flags AnswerFlags
	cmd := &cobra.Command{
		Use:     action + " RUN|QUESTION",
		Short:   fmt.Sprintf("Answer %q to what a run on a server asks", action),
		Long:    fmt.Sprintf("Short for: aod answer RUN|QUESTION %s", action),
		Example: "  aod " + action + " 0198c0de-…",
		Args:    cli.Exactly(1, "the id of a run or of a question"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return Answer(ctx, env, server, args[0], action, flags)
		}),
	}
	flags.register(cmd)
	return cmd
}

// Answer answers a question of a run, or the only open one of it.
func Answer(ctx context.Context, env *cli.Env, server *client.Client, id, action string, flags AnswerFlags) error {
	q, err := Of(ctx, server, id)
	if err != nil {
		return err
	}
	form, err := formOf(q.Form, flags.set)
	if err != nil {
		return err
	}
	if q.Kind != "" && form == nil {
		if action, form, err = saidTo(q, action); err != nil {
			return err
		}
	}
	if err := server.Questions.Answer(ctx, q.ID,
		api.Answer{Action: action, Form: form, By: flags.by, Note: flags.note}); err != nil {
		return err
	}
	env.Note("%s goes on with %s", q.Run, ui.Printable(action))
	return nil
}

// Say answers a question by one text: one of its answers, or what is filled in.
func Say(ctx context.Context, server *client.Client, q api.Question, text string) error {
	action, form := text, json.RawMessage(nil)
	if q.Kind != "" {
		var err error
		if action, form, err = saidTo(q, text); err != nil {
			return err
		}
	}
	return server.Questions.Answer(ctx, q.ID, api.Answer{Action: action, Form: form})
}

// saidTo makes an answer to a program's question of one text.
func saidTo(q api.Question, text string) (action string, form json.RawMessage, err error) {
	action, form, err = spoken(q.Answers, q.Form, text)
	var denied *run.Denied
	if errors.As(err, &denied) {
		err = fault.New(fault.Input, "%s", denied.Reason).WithHint("%s", denied.Hint)
	}
	return action, form, err
}

// Of finds the open question with an id, or the only one of a run. One that is open
// no more is left to the server, which knows why.
func Of(ctx context.Context, server *client.Client, id string) (api.Question, error) {
	var ofRun []api.Question
	for q, err := range server.Questions.List(ctx, "") {
		switch {
		case err != nil:
			return q, err
		case q.ID == id:
			return q, nil
		case q.Run == id:
			ofRun = append(ofRun, q)
		}
	}
	switch len(ofRun) {
	case 0:
		return api.Question{ID: id, Run: id}, nil
	case 1:
		return ofRun[0], nil
	}
	var open []string
	for _, q := range ofRun {
		open = append(open, q.ID+" ("+q.Address+")")
	}
	return api.Question{}, fault.New(fault.Conflict, "the run %s has %d questions open", id, len(ofRun)).
		WithHint("name one of them: %s", strings.Join(open, ", "))
}
