package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
)

// person answers what a client is asked. It is safe for concurrent use.
type person struct {
	mu    sync.Mutex
	asked []*sdk.ElicitParams
	says  func(*sdk.ElicitParams) (*sdk.ElicitResult, error)
}

func (p *person) elicit(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params)
	return p.says(req.Params)
}

// texts are what the person was asked.
func (p *person) texts() (texts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, params := range p.asked {
		texts = append(texts, params.Message)
	}
	return texts
}

func says(action string, content map[string]any) *person {
	return &person{says: func(*sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: action, Content: content}, nil
	}}
}

// meet connects a client with a person before it; nil: it can't ask anybody.
func meet(t *testing.T, transport sdk.Transport, revision string, p *person) *sdk.ClientSession {
	t.Helper()
	opts := &sdk.ClientOptions{}
	if p != nil {
		opts.ElicitationHandler = p.elicit
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "7"}, opts)
	session, err := client.Connect(trusted.Context(t), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// asking is a service whose runs ask something.
func asking(questions ...api.Question) *fakeService {
	f := newFake("hello")
	f.asking.each = questions
	return f
}

func callHello(t *testing.T, session *sdk.ClientSession) *sdk.CallToolResult {
	t.Helper()
	result, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "hello", Arguments: map[string]any{"n": 1}})
	must(t, err)
	return result
}

// resultText is what a call answers with.
func resultText(result *sdk.CallToolResult) string {
	raw, _ := json.Marshal(result)
	return strings.ReplaceAll(string(raw), `\"`, `"`)
}

const nameForm = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`

var (
	whoAsks  = api.Question{Kind: api.QuestionInput, Text: "Who?", Form: json.RawMessage(nameForm), Answers: []string{"answer", "reject"}}
	mayGoOn  = api.Question{Kind: api.QuestionApproval, Text: "May it?", Answers: []string{"approve", "reject"}, Show: json.RawMessage(`{"cost":12,"file":"a.txt"}`)}
	whichOne = api.Question{Text: "Which?", Answers: []string{"approve", "revise", "reject"}, Form: json.RawMessage(`{"type":"object","properties":{"remarks":{"type":"string","maxLength":9},"times":{"type":"int"},"sure":{"type":"bool"},"tone":{"enum":["dry","warm"]}}}`)}
	nested   = api.Question{Kind: api.QuestionInput, Text: "All?", Form: json.RawMessage(`{"type":"object","properties":{"who":{"type":"object","properties":{"name":{"type":"string"}}}}}`), Answers: []string{"answer", "reject"}}
)

// asksOn are the ways and revisions on which people are asked.
func asksOn(t *testing.T, do func(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string)) {
	t.Parallel()
	for _, way := range []string{"http", "stdio"} {
		for _, revision := range []string{Stateless, "2025-11-25", "2025-06-18"} {
			t.Run(way+" "+revision, func(t *testing.T) {
				t.Parallel()
				do(t, ways[way], revision)
			})
		}
	}
}

func TestAPersonAnswersWhatARunAsks(t *testing.T) {
	asksOn(t, func(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string) {
		for name, c := range map[string]struct {
			question api.Question
			person   *person
			want     string
		}{
			"accepts":  {mayGoOn, says("accept", nil), `{"answers":[{"action":"approve","by":"mcp"}]}`},
			"declines": {mayGoOn, says("decline", nil), `{"answers":[{"action":"reject","by":"mcp"}]}`},
			"fills in": {whoAsks, says("accept", map[string]any{"answer": "Ada"}), `{"answers":[{"action":"answer","form":{"answer":"Ada"},"by":"mcp"}]}`},
			"says no":  {whoAsks, says("decline", map[string]any{"answer": "x"}), `{"answers":[{"action":"reject","by":"mcp"}]}`},
			"chooses": {
				whichOne, says("accept", map[string]any{"answer": "revise", "remarks": "shorter", "times": 2, "sure": true, "tone": "dry"}),
				`{"answers":[{"action":"revise","form":{"remarks":"shorter","sure":true,"times":2,"tone":"dry"},"by":"mcp"}]}`,
			},
			"chooses no": {whichOne, says("accept", map[string]any{"answer": "reject"}), `{"answers":[{"action":"reject","form":{},"by":"mcp"}]}`},
		} {
			t.Run(name, func(t *testing.T) {
				f := asking(c.question)
				result := callHello(t, meet(t, to(t, New(f, Options{})), revision, c.person))
				if got := resultText(result); result.IsError || !strings.Contains(got, c.want) || !strings.Contains(got, `"aod/run":"`+idOf(1)) {
					t.Errorf("%s", got)
				}
				if len(c.person.asked) != 1 || len(f.submitted) != 1 || len(f.cancelled) > 0 {
					t.Errorf("asked %d, submitted %d, cancelled %v", len(c.person.asked), len(f.submitted), f.cancelled)
				}
			})
		}
	})
}

func TestWhatIsShownOfAQuestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		question api.Question
		want     string
	}{
		{mayGoOn, `{"mode":"form","message":"hello asks: May it?\n\ncost: 12\n\nfile: a.txt","requestedSchema":{"properties":{},"type":"object"}}`},
		{whoAsks, `{"mode":"form","message":"hello asks: Who?","requestedSchema":{"properties":{"answer":{"type":"string"}},"required":["answer"],"type":"object"}}`},
		{
			whichOne,
			`{"mode":"form","message":"hello asks: Which?","requestedSchema":{"properties":{"answer":{"enum":["approve","revise","reject"],"title":"Answer","type":"string"},` +
				`"remarks":{"maxLength":9,"type":"string"},"sure":{"type":"boolean"},"times":{"type":"integer"},"tone":{"enum":["dry","warm"],"type":"string"}},` +
				`"required":["answer"],"type":"object"}}`,
		},
	} {
		c.question.Unit = "hello"
		e, refusal := elicit(c.question, Stateless)
		raw, err := json.Marshal(e.params)
		if refusal != nil || err != nil || string(raw) != c.want {
			t.Errorf("%s, %v, %v", raw, refusal, err)
		}
	}
}

func TestARunThatNobodyAnswersIsCancelledAndSaysWhy(t *testing.T) {
	asksOn(t, func(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string) {
		options := api.Question{Kind: api.QuestionInput, Text: "Red?", Answers: []string{"red", "blue"}}
		for name, c := range map[string]struct {
			question api.Question
			person   *person
			want     string
		}{
			"a client that shows no forms":  {mayGoOn, nil, "declares the capability `elicitation`"},
			"a form that holds objects":     {nested, says("accept", nil), "what no form of MCP can hold"},
			"a person who closes it":        {mayGoOn, says("cancel", nil), "a person dismissed what it asks"},
			"no to what has no such answer": {options, says("decline", nil), "a person declined"},
		} {
			t.Run(name, func(t *testing.T) {
				f := asking(c.question)
				result := callHello(t, meet(t, to(t, New(f, Options{})), revision, c.person))
				if got := resultText(result); !result.IsError || !strings.Contains(got, c.want) || !strings.Contains(got, `"kind":"unanswered"`) || !strings.Contains(got, idOf(1)) {
					t.Errorf("%s", got)
				}
				if r, _ := f.Get(trusted.Context(t), idOf(1)); r.Outcome != api.WasCancelled || !strings.Contains(r.Error.Message, "ask") {
					t.Errorf("%s %v", r.Outcome, r.Error)
				}
			})
		}
	})
}

func TestTwoQuestionsAtOnce(t *testing.T) {
	asksOn(t, func(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string) {
		f := asking(mayGoOn, whoAsks)
		var both sync.WaitGroup
		both.Add(2)
		p := &person{}
		p.says = func(params *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			p.mu.Unlock()
			both.Done()
			both.Wait() // both are shown at the same time
			p.mu.Lock()
			if strings.HasSuffix(params.Message, "Who?") {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Ada"}}, nil
			}
			return &sdk.ElicitResult{Action: "accept"}, nil
		}
		got := resultText(callHello(t, meet(t, to(t, New(f, Options{})), revision, p)))
		if !strings.Contains(got, `{"answers":[{"action":"approve","by":"mcp"},{"action":"answer","form":{"answer":"Ada"},"by":"mcp"}]}`) {
			t.Errorf("%s", got)
		}
	})
}

func TestHostileAnswersAreNotTaken(t *testing.T) {
	for name, content := range map[string]map[string]any{
		"a field that wasn't asked for": {"answer": "Ada", "admin": true},
		"another type":                  {"answer": 7},
		"nothing":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			asksOn(t, func(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string) {
				isNotTaken(t, to, revision, content)
			})
		})
	}
	for way, size := range map[string]int{"http": 1<<20 + 1, "stdio": 2<<20 + 1} { // larger than a form, than an answer
		t.Run("large "+way, func(t *testing.T) {
			t.Parallel()
			isNotTaken(t, ways[way], "2025-11-25", map[string]any{"answer": strings.Repeat("x", size)})
		})
	}
}

// isNotTaken has a person say what isn't an answer. A client that has to come back sees that by itself.
func isNotTaken(t *testing.T, to func(*testing.T, *Server) sdk.Transport, revision string, content map[string]any) {
	t.Helper()
	f := asking(whoAsks)
	p := says("accept", content)
	result, err := meet(t, to(t, New(f, Options{})), revision, p).CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "hello"})
	if len(f.asking.open(idOf(1))) != 1 {
		t.Error("it is answered")
	}
	if revision == Stateless {
		if err == nil {
			t.Errorf("%s", resultText(result))
		}
		return
	}
	if err != nil || !strings.Contains(resultText(result), "no answer that fits") || len(p.asked) != maxTries || len(f.cancelled) != 1 {
		t.Errorf("%v %v, asked %d, cancelled %v", resultText(result), err, len(p.asked), f.cancelled)
	}
	for _, text := range p.texts()[1:] {
		if !strings.HasPrefix(text, "The answer was not taken: ") {
			t.Error(text)
		}
	}
}

func TestAPersonAnswersRightTheSecondTime(t *testing.T) {
	t.Parallel()
	f := asking(whoAsks)
	p := &person{}
	p.says = func(*sdk.ElicitParams) (*sdk.ElicitResult, error) {
		if len(p.asked) == 1 {
			return nil, errors.New("canary")
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Ada"}}, nil
	}
	got := resultText(callHello(t, meet(t, ways["stdio"](t, New(f, Options{})), "2025-11-25", p)))
	if !strings.Contains(got, `"answer":"Ada"`) || strings.Contains(p.texts()[1], "canary") {
		t.Errorf("%s %v", got, p.texts())
	}
}

func TestWhatIsAnsweredElsewhereIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			f := asking(mayGoOn, whoAsks)
			takenBack := make(chan struct{})
			client := sdk.NewClient(&sdk.Implementation{Name: "tester"}, &sdk.ClientOptions{
				ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					if strings.HasSuffix(r.Params.Message, whoAsks.Text) {
						<-takenBack
						return &sdk.ElicitResult{Action: "decline"}, nil
					}
					defer close(takenBack)
					must(t, f.Answer(trusted.Context(t), f.asking.open(idOf(1))[0].ID, api.Answer{Action: "reject", By: "terminal"}))
					<-ctx.Done()
					return nil, ctx.Err()
				},
			})
			session, err := client.Connect(trusted.Context(t), ways[way](t, New(f, Options{})), &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			must(t, err)
			if got := resultText(callHello(t, session)); !strings.Contains(got, `{"action":"reject","by":"terminal"}`) {
				t.Errorf("%s", got)
			}
			must(t, session.Close())
		})
	}
}

func TestWhoeverAnswersFirstCounts(t *testing.T) {
	t.Parallel()
	f := asking(mayGoOn)
	p := &person{}
	p.says = func(*sdk.ElicitParams) (*sdk.ElicitResult, error) {
		must(t, f.Answer(trusted.Context(t), f.asking.open(idOf(1))[0].ID, api.Answer{Action: "reject", By: "terminal"}))
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	got := resultText(callHello(t, meet(t, ways["http"](t, New(f, Options{})), Stateless, p)))
	if !strings.Contains(got, `{"action":"reject","by":"terminal"}`) {
		t.Errorf("%s", got)
	}
}
