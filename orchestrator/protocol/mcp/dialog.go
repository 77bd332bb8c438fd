package mcp

import (
	"context"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// dialog asks a client what a run asks while a call of it goes on, by requests of the server's own: revisions before
// Stateless have them.
type dialog struct {
	people  people
	run     string
	session *sdk.ServerSession
	version string
	hearing context.Context //nolint:containedctx // it ends when the client can't answer any more

	mu      sync.Mutex
	refusal *unanswered // why the run was cancelled; nil: it wasn't
}

// converse asks the client of a call what its run asks, until stop is called. stop returns why the run was cancelled;
// nil: it wasn't.
func (p people) converse(ctx context.Context, req *sdk.CallToolRequest, run string) (stop func() *unanswered) {
	ctx, cancel := context.WithCancel(ctx)
	d := &dialog{people: p, run: run, session: req.Session, version: req.ProtocolVersion(), hearing: hearingOf(ctx)}
	var done sync.WaitGroup
	done.Go(func() {
		_ = httpwire.Catch(func() error { d.follow(ctx); return nil }) // nobody waits for it
	})
	return func() *unanswered {
		cancel()
		done.Wait()
		return d.refusal
	}
}

// follow asks what is opened, each for itself, and takes back what is open no more.
func (d *dialog) follow(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	open := map[string]context.CancelFunc{}
	events, wait := httpwire.Pump(ctx, d.people.svc.Events(ctx, d.run, 0))
	defer wait()
	for item := range events {
		data, err := item.Value.Decode()
		told, isQuestion := data.(api.QuestionEvent)
		switch {
		case item.Err != nil || err != nil || !isQuestion:
		case told.State != api.QuestionOpen:
			if takeBack := open[told.ID]; takeBack != nil {
				takeBack()
				delete(open, told.ID)
			}
		default:
			ctx, cancel := context.WithCancel(ctx)
			open[told.ID] = cancel
			asking.Go(func() {
				defer cancel()
				_ = httpwire.Catch(func() error { d.ask(ctx, told.ID); return nil })
			})
		}
	}
}

// maxTries is how often a client is asked the same, until it has given an answer that fits.
const maxTries = 3

// ask asks one question, and has its answer stored.
func (d *dialog) ask(ctx context.Context, id string) {
	e, open := d.elicitation(ctx, id)
	if !open {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(d.hearing, cancel)()
	defer cancel()
	why := ""
	for range maxTries {
		said, err := d.session.Elicit(ctx, e.again(why))
		switch {
		case d.hearing.Err() != nil:
			d.refuse(ctx, gone)
			return
		case ctx.Err() != nil:
			return
		case err != nil: // what it says of that is not for people
			why = "it doesn't fit what is asked"
			continue
		}
		answer, refusal, err := e.answer(said)
		if refusal != nil {
			d.refuse(ctx, refusal)
			return
		}
		if err == nil {
			err = d.people.svc.Answer(ctx, id, answer)
		}
		if err == nil || fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) || ctx.Err() != nil {
			return // somebody else was faster, or has to answer it
		}
		d.people.logger.DebugContext(ctx, "answer not taken", "run", d.run, fault.LogAttr(err))
		why = whyNot(err)
	}
	d.refuse(ctx, misfilled)
}

// elicitation is what a client is asked by a question; open says that it is to be asked.
func (d *dialog) elicitation(ctx context.Context, id string) (e elicitation, open bool) {
	questions, err := d.people.svc.Asked(ctx, d.run)
	if err != nil && ctx.Err() == nil {
		d.people.logger.WarnContext(ctx, "question not read", "run", d.run, fault.LogAttr(err))
	}
	for _, q := range questions {
		if q.ID != id {
			continue
		}
		if q.IsForOthers() {
			return e, false
		}
		e, refusal := elicit(q, d.version)
		if d.hearing.Err() != nil {
			refusal = gone
		}
		if refusal != nil {
			d.refuse(ctx, refusal)
		}
		return e, refusal == nil
	}
	return e, false
}

// refuse cancels the run.
func (d *dialog) refuse(ctx context.Context, why *unanswered) {
	d.mu.Lock()
	first := d.refusal == nil
	if first {
		d.refusal = why
	}
	d.mu.Unlock()
	if first {
		d.people.giveUp(ctx, d.run, why.reason)
	}
}

// hearingKey is the key of the context that ends when a client can't answer any more.
type hearingKey struct{}

// withHearing returns a context for the requests of a client, and what says that it can't answer any more.
func withHearing(ctx context.Context) (context.Context, context.CancelFunc) {
	hearing, deaf := context.WithCancel(context.WithoutCancel(ctx))
	return context.WithValue(ctx, hearingKey{}, hearing), deaf
}

// hearingOf is the context that ends when the client of a request can't answer any more.
func hearingOf(ctx context.Context) context.Context {
	if hearing, ok := ctx.Value(hearingKey{}).(context.Context); ok {
		return hearing
	}
	return context.Background()
}
