package agent

import (
	"errors"
	"strings"
	"testing"
)

// prompts returns a program whose answers to its prompts are these lines; ID is the prompt's id.
func prompts(greet func(*program, string), prompted string, answers ...[]string) *program {
	return newProgram(func(p *program, line string) {
		if !strings.Contains(line, prompted) {
			greet(p, line)
			return
		}
		for _, answer := range answers[0] {
			p.says(strings.ReplaceAll(answer, "ID", idOf(line)))
		}
		answers = answers[1:]
	})
}

func chunk(text, more string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"agent_message_chunk",` + more +
		`"content":{"type":"text","text":"` + text + `"}}}}`
}

func update(kind string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"` + kind + `"}}}`
}

const acpDone = `{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"end_turn"}}`

func TestWhatIsSaidBetweenTurnsAnswersNothing(t *testing.T) {
	for name, c := range map[string]struct {
		row  int
		late []string // after the first answer
		then []string // the second answer
	}{
		"a late result": {1, []string{
			`{"type":"assistant","message":{"content":[{"type":"text","text":"late"}]}}`, `{"type":"result","subtype":"success","result":"late"}`,
		}, []string{`{"type":"result","subtype":"success","result":"two"}`}},
		"a late end without a text": {1, []string{`{"type":"assistant","message":{"content":[{"type":"text","text":"late"}]}}`, `{"type":"result"}`}, []string{
			`{"type":"assistant","message":{"content":[{"type":"text","text":"two"}]}}`, `{"type":"result"}`,
		}},
		"an end that can't be read": {1, []string{`{"type":"result","result":"lat`}, []string{`{"type":"result","result":"two"}`}},
		"a late chunk":              {0, []string{chunk("late", "")}, []string{chunk("two", ""), acpDone}},
		"half a line":               {0, []string{chunk("late", ""), "a note"}, []string{chunk("two", ""), acpDone}},
	} {
		t.Run(name, func(t *testing.T) {
			a := agents[c.row]
			first := []string{`{"type":"result","result":"one"}`}
			if c.row == 0 {
				first = []string{chunk("one", ""), acpDone}
			}
			p := prompts(a.react, a.prompted, append(first, c.late...), c.then)
			d := dialogOf(t, a.protocol, p, State{}, &journal{})
			if reply, err := d.Turn(t.Context(), "hello"); err != nil || reply.Text != "one" {
				t.Fatalf("%+v, %v", reply, err)
			}
			j := &journal{dies: 1}
			again := dialogOf(t, a.protocol, p, d.State(), j)
			_, _ = again.Turn(t.Context(), "again")
			again.Close()
			j.dies = 0
			from := j.states[len(j.states)-1]
			reply, err := dialogOf(t, a.protocol, p, from, j).Turn(t.Context(), "again")
			if err != nil || reply.Text != "two" || p.heard(a.prompted) != 2 {
				t.Errorf("%+v, %v, told %q", reply, err, j.told())
			}
			for _, told := range j.told() {
				if strings.HasPrefix(told, "text late") {
					t.Errorf("it is told as a part of the answer: %q", j.told())
				}
			}
		})
	}
}

func TestOneOddCharacterLosesNoResult(t *testing.T) {
	for name, c := range map[string][2]string{
		"half a surrogate pair":   {`{"type":"result","result":"a\ud83d b"}`, "a\uFFFD b"},
		"NaN":                     {`{"type":"result","duration_ms":NaN,"x":[-Infinity,Infinity],"result":"NaN"}`, "NaN"},
		"a tab":                   {"{\"type\":\"result\",\t\"result\":\"a\tb\"}", "a\tb"},
		"a tab after a backslash": {"{\"type\":\"result\",\"x\":\"\\\\\",\"result\":\"\\\"\tb\"}", "\"\tb"},
		"a byte order mark":       {"\uFEFF" + `{"type":"result","result":"a\ufeff"}`, "a\uFEFF"},
		"colours":                 {"\x1b[2K\x1b[1G" + `{"type":"result","result":"a"}` + "\x1b[0m", "a"},
		"a terminal's title":      {"\x1b]0;\"title\x07\x1b]8;;\x1b\\" + `{"type":"result","result":"a"}`, "a"},
		"a repeated key":          {`{"type":"result","result":"x","result":"R"}`, "R"},
		"a number beyond doubles": {`{"type":"result","result":"R","n":1e400,"m":` + strings.Repeat("9", 500) + `}`, "R"},
		"another encoding":        {"{\"type\":\"result\",\"result\":\"caf\xe9\"}", "caf\uFFFD"},
		"a path of Windows":       {`{"type":"result","x":"\d","result":"C:\Users\'s \u12 \"` + "\\\\" + `"}`, `C:\Users\'s \u12 "\`},
		"-NaN":                    {`{"type":"result","x":-NaN,"result":"R"}`, "R"},
		"all at once":             {"\uFEFF\x1b[0m{\"type\":\"result\",\"n\":NaN,\"n\":1,\"result\":\"\\ud83d\t\xe9\"}", "\uFFFD\t\uFFFD"},
		"a large one":             {`{"type":"result","n":NaN,"x":"` + strings.Repeat("x", 3*maxValues) + `","result":"R"}`, "R"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []Format{JSONL, JSON} {
				result := claude
				result.Format = format
				output, err := ReadOutput(&Config{Result: result}, strings.NewReader(c[0]+"\n"), limit)
				if err != nil || output.Text != c[1] || output.Skipped != 0 {
					t.Errorf("%s: %q, %v", format, output.Text, err)
				}
			}
			p := prompts(lineAgent, `"type":"user"`, []string{c[0]})
			if reply, err := dialogOf(t, StreamJSON, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != c[1] {
				t.Errorf("in a dialog: %q, %v", reply.Text, err)
			}
		})
	}
	for _, broken := range []string{`{"type":"result"`, `{"type":"result","result":"a`, "{\x1b[", "\x1b", "\x1b]", `{"a":nan}`, `{"a":1,}`, "{'a':1}", `"\`} {
		if got, err := decode([]byte(broken)); err == nil {
			t.Errorf("%q is read as %v", broken, got)
		}
	}
}

func TestAnOddDetailOfTheUsageIsLostAlone(t *testing.T) {
	odd := `{"type":"result","result":"R","usage":{"n":1e400},"total_cost_usd":1e400}`
	output, err := ReadOutput(&Config{Result: claude}, strings.NewReader(odd), limit)
	if err != nil || output.Text != "R" || output.Usage != nil || output.CostUSD != "" {
		t.Errorf("%+v, %v", output, err)
	}
}

// No other end comes than the one that can't be read.
func TestAnEndThatCannotBeReadEndsTheTurn(t *testing.T) {
	long := strings.Repeat("x", MaxMessage)
	for name, c := range map[string]struct {
		row  int
		line string
	}{
		"a result that breaks off":         {1, `{"type":"result","result":"a`},
		"a result that is too long":        {1, `{"type":"result","result":"` + long + `"}`},
		"a result behind an odd character": {1, "\uFEFF{\"x\":\"\t\",\"type\":\"result\",\"result\":[}"},
		"a result with too many values":    {1, `{"type":"result","x":[` + strings.Repeat("0,", maxValues) + `0]}`},
		"an answer that breaks off":        {0, `{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"end`},
		"an answer that is too long":       {0, `{"jsonrpc":"2.0","id":ID,"result":{"x":"` + long + `"}}`},
		"an answer of plain JSON-RPC":      {2, `{"jsonrpc":"2.0","id":ID,"result":{"text":"` + long + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := agents[c.row]
			d := dialogOf(t, a.protocol, prompts(a.react, a.prompted, []string{c.line}), State{}, &journal{choose: a.allow})
			var failed *ProgramError
			if _, err := d.Turn(t.Context(), "hello"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "can't be read: it ") || !d.Reusable() {
				t.Errorf("%v, reusable %v", err, d.Reusable())
			}
		})
	}
	t.Run("what is no end is left out", func(t *testing.T) {
		p := prompts(lineAgent, `"type":"user"`, []string{
			`{"type":"assistant","message":{"type":"result","x":`, `{"type":"user","x":"` + long + `"}`, `{"x":{"type":"result"`, `{"type":"result","result":"R"}`,
		})
		if reply, err := dialogOf(t, StreamJSON, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != "R" {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

func TestMessagesHaveBoundaries(t *testing.T) {
	for name, c := range map[string]struct {
		said []string
		want string
	}{
		"chunks of one message":      {[]string{chunk("a", ""), chunk("b", "")}, "ab"},
		"behind a tool":              {[]string{chunk("I look.", ""), update("tool_call"), update("tool_call_update"), chunk("It is 4.", "")}, "I look.\n\nIt is 4."},
		"news of a tool amid a word": {[]string{chunk("a", ""), update("tool_call_update"), update("usage_update"), chunk("b", "")}, "ab"},
		"behind a plan or a thought": {[]string{chunk("a", ""), update("plan"), chunk("b", ""), update("agent_thought_chunk"), chunk("c", "")}, "a\n\nb\n\nc"},
		"two ids":                    {[]string{chunk("a", `"messageId":"1",`), chunk("b", `"messageId":"2",`), chunk("c", `"messageId":"2",`)}, "a\n\nbc"},
		"one id over a tool":         {[]string{chunk("a", `"messageId":"1",`), update("tool_call"), chunk("b", `"messageId":"1",`)}, "ab"},
		"a tool before all":          {[]string{update("tool_call"), chunk("", ""), chunk("a", ""), update("tool_call")}, "a"},
		"ids that are numbers":       {[]string{chunk("a", `"messageId":1,`), chunk("b", `"messageId":2,`), chunk("c", `"messageId":2,`)}, "a\n\nbc"},
		"an id that is null":         {[]string{chunk("a", `"messageId":null,`), chunk("b", `"messageId":null,`)}, "ab"},
		"a message of the user":      {[]string{chunk("a", ""), update("user_message_chunk"), chunk("b", "")}, "a\n\nb"},
		"behind a request for a file": {[]string{
			chunk("I read.", ""), `{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"S","path":"/x"}}`, chunk("It is 4.", ""),
		}, "I read.\n\nIt is 4."},
	} {
		t.Run(name, func(t *testing.T) {
			p := prompts(acpAgent, `"session/prompt"`, append(c.said, acpDone))
			if reply, err := dialogOf(t, ACP, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != c.want {
				t.Errorf("%q, %v", reply.Text, err)
			}
		})
	}
	said := func(content, more string) string {
		return `{"type":"assistant",` + more + `"message":{"id":"m","content":` + content + `}}`
	}
	const a, b = `[{"type":"text","text":"a"}]`, `[{"type":"text","text":"b"}]`
	another := strings.ReplaceAll(said(b, ""), `"id":"m"`, `"id":"n"`)
	for name, c := range map[string]struct {
		said []string
		want string
	}{
		"of a subagent":         {[]string{said(a, ""), said(`[{"type":"text","text":"x"}]`, `"parent_tool_use_id":"t",`), said(b, "")}, "ab"},
		"of two ids":            {[]string{said(a, ""), another}, "a\n\nb"},
		"of no ids":             {[]string{strings.ReplaceAll(said(a, ""), `"id":"m",`, ""), another}, "ab"},
		"behind a tool":         {[]string{said(a, ""), said(`[{"type":"tool_use","id":"t","name":"ls"}]`, ""), said(b, "")}, "a\n\nb"},
		"behind its result":     {[]string{said(a, ""), `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}`, said(b, "")}, "a\n\nb"},
		"around a thought":      {[]string{said(`[{"type":"text","text":"a"},{"type":"thinking","thinking":"x"},{"type":"text","text":"b"}]`, "")}, "a\n\nb"},
		"a text as a content":   {[]string{said(`"a"`, "")}, "a"},
		"an object as a result": {[]string{said(a, ""), `{"type":"result","result":{"a":1}}`}, `{"a":1}`},
	} {
		p := prompts(lineAgent, `"type":"user"`, append(c.said, `{"type":"result"}`))
		if reply, err := dialogOf(t, StreamJSON, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != c.want {
			t.Errorf("lines, %s: %q, %v", name, reply.Text, err)
		}
	}
}

func TestTheReasonOfAFailureIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		row  int
		line string
		want []string
	}{
		"errors":         {1, `{"type":"result","subtype":"error_max_turns","errors":["3 turns at most",{"message":"stop"}]}`, []string{"error_max_turns", "3 turns at most; stop"}},
		"data":           {0, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"Internal error","data":{"details":"no money"}}}`, []string{"Internal error: ", "no money"}},
		"data as a text": {2, `{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"Internal error","data":"no money"}}`, []string{"Internal error: no money"}},
		"a refusal":      {0, `{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"refusal"}}`, []string{"refusal"}},
		"cancelled":      {0, `{"jsonrpc":"2.0","id":ID,"result":{"stopReason":"cancelled"}}`, []string{"cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := agents[c.row]
			d := dialogOf(t, a.protocol, prompts(a.react, a.prompted, []string{c.line}), State{}, &journal{})
			_, err := d.Turn(t.Context(), "hello")
			var failed *ProgramError
			if !errors.As(err, &failed) || !d.Reusable() {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v doesn't say %q", err, want)
				}
			}
		})
	}
	output, err := ReadOutput(&Config{Result: Result{Format: JSONL, Error: &Pick{At: "/errors"}}}, strings.NewReader(`{"errors":["a","b"]}`), limit)
	if err != nil || output.Reason != "a; b" {
		t.Errorf("%+v, %v", output, err)
	}
}

func TestStructuredOutputIsTheAnswer(t *testing.T) {
	p := prompts(lineAgent, `"type":"user"`, []string{`{"type":"result","result":"Done.","structured_output":{"a":1}}`})
	if reply, err := dialogOf(t, StreamJSON, p, State{}, &journal{}).Turn(t.Context(), "hello"); err != nil || reply.Text != `{"a":1}` {
		t.Errorf("%+v, %v", reply, err)
	}
}
