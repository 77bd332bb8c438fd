package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// looked is what a person at a terminal sees of a turn.
func looked(events ...api.AgentEvent) string {
	v, screen := newView(true)
	for _, e := range events {
		v.show(e)
	}
	v.end(api.Record{Outcome: api.Success})
	return screen.String()
}

// newView begins a turn on one screen.
func newView(edited bool) (*view, *testkit.Log) {
	var screen testkit.Log
	out := &ui.Output{Writer: &screen, Terminal: edited, FD: -1}
	v := &view{env: &cli.Env{Out: out, Err: &ui.Output{Writer: &screen, Terminal: edited, FD: -1}}, edited: edited}
	v.begin()
	return v, &screen
}

func say(text string) api.AgentEvent { return api.AgentEvent{Kind: api.AgentText, Text: text} }

func think(text string) api.AgentEvent { return api.AgentEvent{Kind: api.AgentThought, Text: text} }

func call(id, name, arguments string) api.AgentEvent {
	return api.AgentEvent{Kind: "tool", Text: name, ID: id, ToolNews: api.ToolNews{Arguments: arguments, State: api.ToolRunning}}
}

func called(id string, state api.ToolState, lines int) api.AgentEvent {
	return api.AgentEvent{Kind: "tool", ID: id, ToolNews: api.ToolNews{State: state, Lines: lines}}
}

func TestWhatIsSeenOfATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told []api.AgentEvent
		want string
	}{
		"text as it comes": {[]api.AgentEvent{say("one, "), say("two\nthree")}, "one, two\nthree\n"},
		"a call on a line": {
			[]api.AgentEvent{say("look: "), call("1", "Bash", `{"command":"ls"}`), called("1", api.ToolDone, 214), say("done")},
			"look: \n▸ Bash {\"command\":\"ls\"} ✓ … 214 lines\ndone\n",
		},
		"calls at once": {
			[]api.AgentEvent{call("1", "A", ""), call("2", "B", ""), called("1", api.ToolDone, 0), called("2", api.ToolFailed, 1)},
			"▸ A\n▸ B\n▸ A ✓\n▸ B ✗ failed … 1 line\n",
		},
		"a call that doesn't end": {[]api.AgentEvent{call("1", "A", ""), say("x")}, "▸ A\nx\n"},
		"a call of an older server": {
			[]api.AgentEvent{{Kind: "tool", Text: "Bash", ID: "1"}, {Kind: "tool", ID: "1"}, {Kind: "tool", ID: "9"}, say("x")}, "▸ Bash\nx\n",
		},
		"news of a call":   {[]api.AgentEvent{call("1", "A", ""), call("1", "A 2", ""), called("1", api.ToolDone, 0)}, "▸ A ✓\n"},
		"thoughts, folded": {[]api.AgentEvent{think("\n hm, "), think("well\nand\nso\n"), say("x")}, "thought: hm, well … 4 lines\nx\n"},
		"a short thought":  {[]api.AgentEvent{think("hm")}, "thought: hm\n"},
		"a plan":           {[]api.AgentEvent{{Kind: "plan", Text: "look\nedit"}}, "plan: look … 2 lines\n"},
		"noise":            {[]api.AgentEvent{{Kind: "progress", Text: "system/init"}, say("x")}, "x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if !strings.Contains(want, "x\n") && !strings.Contains(want, "done") && !strings.Contains(want, "three") {
				want += "null\n" // the record has no output
			}
			if got := looked(c.told...); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAnAgentCannotUseTheTerminal(t *testing.T) {
	t.Parallel()
	hostile := "\x1b[2J\x1b]0;title\a\u202e\r"
	long := strings.Repeat("x", 3*maxShown)
	v, screen := newView(true)
	v.env.Out.FD = -1
	for _, e := range []api.AgentEvent{
		say(hostile), think(hostile + "\n" + hostile), call(hostile, hostile, hostile), called(hostile, api.ToolDone, 1),
		{Kind: "plan", Text: hostile},
		{Kind: hostile, Text: hostile},
		call("1", long, long), called("1", api.ToolFailed, 1<<60), think(long),
		{Kind: "refused", Text: long},
		say(long), say("more"),
	} {
		v.show(e)
	}
	for n := range 3 * maxTools {
		v.show(call(fmt.Sprint(n), "x", ""))
	}
	if len(v.tools) != maxTools || len(v.order) != maxTools {
		t.Errorf("%d calls are kept", len(v.tools))
	}
	v.show(api.WarningEvent{Message: hostile + long})
	names, _ := json.Marshal(map[string]string{"a": hostile + long})
	v.ask(api.Question{Text: hostile + long, Answers: append([]string{"a", hostile}, strings.Split(strings.Repeat("y ", 1000), " ")...), Show: names})
	v.end(api.Record{ID: hostile, Outcome: api.SystemError, Error: &api.RunError{Message: hostile}, Files: []api.File{{Name: hostile}}})
	seen := screen.String()
	if strings.ContainsAny(seen, "\x1b\a\r\u202e") {
		t.Error("the terminal obeys it")
	}
	if most := maxShown + maxQuestion + 3*maxTools*8 + 64<<10; len(seen) > most {
		t.Errorf("%d bytes are shown, more than %d", len(seen), most)
	}
	if !strings.Contains(seen, "… 2.0 MiB more, which `aod runs") || !strings.Contains(seen, "bytes more, which aren't shown") {
		t.Error("what is left out isn't told")
	}
}

func TestAnswersHaveNumbers(t *testing.T) {
	t.Parallel()
	q := api.Question{Answers: []string{"allow", "deny", "1"}}
	for text, want := range map[string]string{"allow": "allow", "2": "deny", "1": "1", "3": "1", "4": "4", "0": "0", "-1": "-1", "x": "x"} {
		if got := chosen(q, text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestWhatTurnsTook(t *testing.T) {
	t.Parallel()
	var s spent
	if got := s.String(); got != "nothing is told of its cost" {
		t.Error(got)
	}
	s.add(api.Record{Models: &api.ModelUsage{Calls: 2, Charged: 70, Cost: 10_000_000}})
	s.add(api.Record{
		Models: &api.ModelUsage{Calls: 1, Charged: 30}, CostUSD: "0.25",
		AgentUsage: json.RawMessage(`{"inputTokens":5,"service":"x","a":{"b_tokens":1},"output_tokens":7}`),
	})
	s.add(api.Record{AgentUsage: json.RawMessage(`[1]`), CostUSD: "0.5"})
	var below spent
	below.add(api.Record{Models: &api.ModelUsage{Calls: 1, Charged: 30, Tree: &api.ModelTotal{Charged: 130, Cost: 20_000_000}}})
	below.add(api.Record{Models: &api.ModelUsage{Calls: 1, Charged: 20, Tokens: api.ModelTokens{Input: 10, Cached: 5}}})
	var free spent // of calls, but not of what it called
	free.add(api.Record{Models: &api.ModelUsage{Tree: &api.ModelTotal{Cost: 10_000_000}}})
	if got, want := free.String(), "0 model calls, 0 tokens, 0.01 with what it called"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := below.String(), "2 model calls, 150 tokens, 50 % of the input cached, 0.02 with what it called"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := s.String(), "3 model calls, 100 tokens, 0.01; the agent tells inputTokens 5, output_tokens 7, 0.75 USD"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func words(answer, field, text string) api.TokensEvent {
	return api.TokensEvent{Answer: answer, Kind: api.AgentText, Field: field, Text: text}
}

// What a model says is shown as it comes, and what the turn answers then is there once, whole.
func TestWhatIsSeenOfAModelsWords(t *testing.T) {
	t.Parallel()
	lost := words("2", "text", "of it")
	lost.Lost = true
	for name, c := range map[string]struct {
		said []api.EventData
		want string
	}{
		"all of it":        {[]api.EventData{words("1", "text", "all "), words("1", "text", "of it")}, "all of it\n"},
		"its beginning":    {[]api.EventData{words("1", "text", "all")}, "all of it\n"},
		"nothing of it":    {nil, "all of it\n"},
		"another text":     {[]api.EventData{words("1", "text", "none")}, "none\nall of it\n"},
		"its end":          {[]api.EventData{words("1", "text", "all "), lost}, "all \nof it\nall of it\n"},
		"two attempts":     {[]api.EventData{words("1", "text", "all o"), words("2", "text", "all of"), api.ProgressEvent{Step: "s"}}, "all o\nall of\ns\n it\n"},
		"words on the way": {[]api.EventData{words("1", "", "I look."), api.ProgressEvent{Step: "turn 1: look"}, words("2", "", "Now."), words("2", "text", "all of it")}, "I look.\nturn 1: look\nNow.\nall of it\n"},
		"other fields":     {[]api.EventData{words("1", "title", "T"), words("1", "text", "all of it"), words("1", "note", "N")}, "all of it\n"},
		"thoughts":         {[]api.EventData{api.TokensEvent{Answer: "1", Kind: api.AgentThought, Text: "hm\nso\n"}, words("1", "", "all of it")}, "thought: hm … 2 lines\nall of it\n"},
		"control bytes":    {[]api.EventData{words("1", "", "\x1b[2Jx")}, "\ufffd[2Jx\nall of it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, screen := newView(true)
			for _, e := range c.said {
				v.show(e)
			}
			v.end(api.Record{Outcome: api.Success, Output: json.RawMessage(`{"text":"all of it"}`)})
			if got := screen.String(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
