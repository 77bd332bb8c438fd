// Package questions keeps what runs ask people, and has a run go on when it is answered.
//
//	Registry.Ask     stores a question and waits for its answer, which is stored before it is heard
//	Registry.Answer  checks an answer against its question, stores it, and wakes who waits
//	Registry.Close   closes what is open at the end of a run
//
// A question that has approvers is answered by one of them alone (approvers.go), who may be of another team: that one
// sees the question and the files that it shows, and nothing else of its run.
//
// Whoever loses the answer on the way finds the question again under its key. Registry.suspended (ask.go) waits on a
// small stack for runs that a kind has suspended with run.Asks.
//
// It must not know how runs are led, nor HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package questions

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Options are what a Registry works with.
type Options struct {
	Questions *store.Questions
	// Admits returns a fault while no answer is taken.
	Admits func(ctx context.Context) error
	// Persist repeats what has to be stored of a run until it is, until ctx ends, or until the process lets go of its
	// runs.
	Persist func(ctx context.Context, operation, run string, do func() error) error
	// News is told of each run of which something was stored.
	News func(run string)
	// Refused is told that the client of ctx may not answer a question of a team's.
	Refused func(ctx context.Context, team, question string)
	// StateDir is where the run of a flow has the files of its state.
	StateDir func(run string) string
}

// Registry implements run.People by what is stored: whoever asks a server for the open questions may answer them. It
// is safe for concurrent use.
type Registry struct {
	opts Options

	mu      sync.Mutex
	waiting map[string]*waiters // by question, and by run for its next question
	asking  map[string]bool     // runs that may have open questions
}

// New returns a Registry.
func New(opts Options) *Registry {
	return &Registry{opts: opts, waiting: map[string]*waiters{}, asking: map[string]bool{}}
}

// waiters are those who wait for one thing: a program may ask again before it was heard of
// that nobody reads the answer to its first request.
type waiters struct {
	woken chan struct{}
	count int
}

// await returns a channel that is closed by the next wake for an id. leave must follow.
func (g *Registry) await(id string) (woken <-chan struct{}, leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.waiting[id]
	if w == nil {
		w = &waiters{woken: make(chan struct{})}
		g.waiting[id] = w
	}
	w.count++
	return w.woken, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if w.count--; w.count == 0 && g.waiting[id] == w {
			delete(g.waiting, id)
		}
	}
}

func (g *Registry) wake(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.waiting[id]; w != nil {
		close(w.woken)
		delete(g.waiting, id)
	}
}

// AwaitOpened returns a channel that is closed when a run opens a question. leave must follow.
func (g *Registry) AwaitOpened(run string) (opened <-chan struct{}, leave func()) {
	return g.await(run)
}

// Filter selects questions.
type Filter struct {
	Run   string // "": of all
	All   bool   // of Run: those that are answered and closed, too
	Mine  bool   // only those that name the client as an approver, and that it may answer
	After int64  // as a page before had it
	Limit int    // 1..1000; 0 is 100
}

// List lists the questions that the client of ctx may know of, the oldest first.
func (g *Registry) List(ctx context.Context, f Filter) (api.QuestionPage, error) {
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.QuestionPage{}, err
	}
	rows, err := g.rows(ctx, f, limit)
	page := api.QuestionPage{Questions: make([]api.Question, 0, len(rows))}
	for _, row := range rows {
		q, err := shown(ctx, row)
		if err != nil {
			return api.QuestionPage{}, err
		}
		page.Questions = append(page.Questions, q)
	}
	if store.Full(rows, limit) {
		page.Next = new(g.opts.Questions.Behind(rows[len(rows)-1]))
	}
	return page, err
}

func (g *Registry) rows(ctx context.Context, f Filter, limit int) ([]store.Question, error) {
	if f.All && f.Run == "" {
		return nil, fault.New(fault.Input, "all questions are listed of one run").WithHint("name it: ?run=ID&all=true")
	}
	return g.opts.Questions.List(ctx, store.QuestionFilter{
		Run: f.Run, All: f.All, At: time.Now(), Owned: store.OwnedIn(access.ReachOfQuestions(ctx)),
		Named: access.ApproverOf(ctx), Mine: f.Mine, After: f.After, Limit: limit,
	})
}

// Get returns a question, also one that is answered or closed, or a NotFound fault.
func (g *Registry) Get(ctx context.Context, id string) (api.Question, error) {
	row, err := g.row(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	return shown(ctx, row)
}

// Names reports whether a question names the client of ctx as an approver. One that can't be read doesn't.
func (g *Registry) Names(ctx context.Context, id string) bool {
	text, err := g.opts.Questions.ApproversOf(ctx, id)
	if err != nil || text == "" {
		return false
	}
	approvers, err := approversOf(store.Question{Approvers: text})
	return err == nil && access.IsApprover(ctx, approvers)
}

// row returns what is stored of a question of a run that the client of ctx may know of.
func (g *Registry) row(ctx context.Context, id string) (store.Question, error) {
	row, err := g.opts.Questions.Get(ctx, id)
	if err != nil {
		return row, err
	}
	approvers, err := approversOf(row)
	seen := access.ReachOfQuestions(ctx).Sees(access.Owner{Team: row.Team, By: row.MadeBy})
	if err == nil && !seen && !access.IsApprover(ctx, approvers) {
		access.Hide(ctx)
		return store.Question{}, store.UnknownQuestion(id)
	}
	return row, err
}

func shown(ctx context.Context, row store.Question) (api.Question, error) {
	q := api.Question{
		ID: row.ID, Run: row.Run, Unit: row.Unit, Address: row.Address, Kind: api.QuestionKind(row.Kind),
		Text: row.Text, Show: row.Show, Form: row.Form, Until: api.TimeOrNil(row.Until), AskedAt: row.AskedAt,
		ClosedAt: api.TimeOrNil(row.ClosedAt),
	}
	if row.Answer != nil {
		q.Answered = &api.Answered{Token: row.AnsweredBy, At: row.AnsweredAt}
		if err := json.Unmarshal(row.Answer, q.Answered); err != nil {
			return q, run.Corrupt(err)
		}
	}
	if err := json.Unmarshal(row.Answers, &q.Answers); err != nil {
		return q, run.Corrupt(err)
	}
	var err error
	if q.Approvers, err = approversOf(row); err != nil {
		return q, err
	}
	q.MayAnswer, q.Files = access.MayAnswer(ctx, q.Approvers), filesIn(q)
	return q, nil
}

// Oldest returns what is told of the oldest open question of a run; nil: it has none.
func (g *Registry) Oldest(ctx context.Context, id string) (*api.OpenQuestion, error) {
	rows, err := g.opts.Questions.List(ctx, store.QuestionFilter{Run: id, At: time.Now(), Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	q := rows[0]
	return &api.OpenQuestion{ID: q.ID, Kind: api.QuestionKind(q.Kind), Until: api.TimeOrNil(q.Until)}, nil
}
