package workers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	units "github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// face answers what workers ask.
type face struct{ *Feature }

// Patterns are the addresses of Handler, as http.ServeMux writes them.
func Patterns() []string { return []string{wire.Root} }

// Handler answers the requests of workers, each by its credential: see access.Work.
func (f *Feature) Handler() http.Handler {
	h, mux := face{f}, http.NewServeMux()
	for pattern, act := range map[string]func(http.ResponseWriter, *http.Request, string) error{
		"POST " + wire.Enrol:  h.enrol,
		"POST " + wire.Orders: h.orders,
		"POST " + wire.Renew:  h.renew,
		"POST " + wire.Accept: h.acceptance,
		"POST " + wire.Units:  h.used,
		"POST " + wire.Leave:  h.leave,
	} {
		mux.Handle(pattern, answering(func(w http.ResponseWriter, r *http.Request) error {
			name := access.GrantOf(r.Context()).Name
			if name == "" { // the server asks for no tokens: everybody would be a worker
				return fault.New(fault.Forbidden, "workers need a server that asks for tokens").
					WithHint("serve without --no-auth")
			}
			if name == access.AnyNode && r.URL.Path != wire.Enrol {
				return errAnyNode
			}
			return act(w, r, name)
		}))
	}
	h.ofLeases(mux)
	return mux
}

// ofLeases adds the addresses of leases.
func (h face) ofLeases(mux *http.ServeMux) {
	at := wire.Leases + "{lease}/"
	for pattern, act := range map[string]func(http.ResponseWriter, *http.Request, *lease) error{
		"GET " + at + wire.Unit:                    h.unit,
		"GET " + at + wire.Secrets:                 h.secrets,
		"GET " + at + wire.Project:                 h.project,
		"PUT " + at + wire.Changes:                 h.changes,
		"GET " + at + wire.Changes:                 h.earlier,
		"GET " + at + wire.Home:                    h.home,
		"PUT " + at + wire.Home:                    h.putHome,
		"POST " + at + wire.Ask:                    h.ask,
		"POST " + at + wire.Stdin:                  h.stdin,
		"POST " + at + wire.Stdout:                 h.stdout,
		"GET " + at + wire.Input + "/{name...}":    h.input,
		"GET " + at + wire.Incoming + "/{name...}": h.incoming,
		"GET " + at + wire.Image + "/{ref...}":     h.image,
		"POST " + at + wire.Report:                 h.report,
		"POST " + at + wire.Slot:                   h.slot,
		"HEAD " + at + wire.Output + "/{name...}":  h.outputSize,
		"PUT " + at + wire.Output + "/{name...}":   h.output,
		"POST " + at + wire.End:                    h.end,
		"POST " + at + wire.Gone:                   h.gone,
		"PUT " + at + wire.Transfers + "/{id}":     h.transfer,
		"POST " + at + wire.Transfers + "/{id}":    h.transferred,
		at + wire.API + "/{rest...}":               h.api,
	} {
		mux.Handle(pattern, answering(func(w http.ResponseWriter, r *http.Request) error {
			l, err := h.leaseOf(w, r)
			if err != nil {
				return err
			}
			ctx, end := h.whileLed(r.Context())
			defer end()
			return act(w, r.WithContext(ctx), l)
		}))
	}
}

// answering answers with the problem of an error.
func answering(act func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := httpwire.Watch(w)
		err := act(out, r)
		switch {
		case err == nil:
		case out.Begun():
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		default:
			_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(err)) // whoever asked has gone
		}
	})
}

// whileLed is the time of a request about a run: it ends when this process lets go of its runs, for the next one
// answers.
func (h face) whileLed(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.process.Life, func() { end(errEnds) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// leaseOf returns the lease that an address names, of the worker that asks.
func (h face) leaseOf(w http.ResponseWriter, r *http.Request) (*lease, error) {
	if h.process.Life.Err() != nil {
		return nil, errEnds
	}
	name := access.GrantOf(r.Context()).Name
	if l := h.leases.of(name, r.PathValue("lease")); l != nil {
		return l, nil
	}
	if !h.ready.Load() {
		return nil, errEnds
	}
	w.Header().Set(wire.HeaderVoid, "1")
	return nil, errVoid
}

// read reads a message.
func read(r *http.Request, most int64, into any) error {
	body := httpwire.BodyOf(r, most)
	raw, err := io.ReadAll(body)
	if err != nil {
		return body.Or(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.BadRequest, err, "the message can't be read").
			WithHint("has the worker the version of the server?")
	}
	return nil
}

func reply(w http.ResponseWriter, v any) error {
	return httpwire.Reply(w, http.StatusOK, httpwire.TypeJSON, v)
}

func done(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h face) enrol(w http.ResponseWriter, r *http.Request, name string) error {
	var asked wire.Enrolment
	if err := read(r, httpwire.SmallBody, &asked); err != nil {
		return err
	}
	if name == access.AnyNode {
		var err error
		if name, err = h.admit(r.Context(), asked); err != nil {
			return err
		}
	} else if err := h.opts.Credentials.Enrol(name, asked.Credential); err != nil {
		return err
	}
	h.logger.Info("worker joined", "worker", name)
	return reply(w, wire.Enrolled{Name: name, Home: h.process.Home.Owner})
}

// errAnyNode refuses what a machine asks that has enrolled as no worker yet.
var errAnyNode = fault.New(fault.Forbidden, "with what all nodes of the Swarm have one may join, and nothing else").
	WithHint("`aod work --join FILE` joins")

// admit has the worker of a node join, and returns its name. One that joins again has another credential from then on.
func (h face) admit(ctx context.Context, asked wire.Enrolment) (string, error) {
	if h.opts.Swarm == nil || len(asked.Node) > maxNode {
		return "", errAnyNode
	}
	others, err := h.opts.Credentials.Names()
	if err != nil {
		return "", err
	}
	name, err := h.opts.Swarm.Join(ctx, asked.Node, func(name string) bool { return slices.Contains(others, name) })
	if err != nil {
		return "", err
	}
	if err := h.opts.Credentials.Admit(name, asked.Credential); err != nil {
		return "", err
	}
	if h.opts.Swarm.IsRemoved(name) { // while it joined
		return "", errors.Join(errRemoved, h.opts.Credentials.RemoveWorker(name))
	}
	return name, nil
}

// leave answers a worker that was told to end whether its node is to be emptied.
func (h face) leave(w http.ResponseWriter, r *http.Request, name string) error {
	var asked wire.Held
	if err := read(r, httpwire.SmallBody, &asked); err != nil {
		return err
	}
	var answer wire.Leaving
	if worker := h.registry.find(name); worker != nil && h.opts.Swarm != nil {
		answer.Finish = h.opts.Swarm.Leaves(r.Context(), name, h.registry.nodeOf(name))
		h.registry.showAll()
	}
	h.logger.Info("worker leaves", "worker", name, "finish", answer.Finish)
	return reply(w, answer)
}

// orders sends a worker its orders, until the stream ends.
func (h face) orders(w http.ResponseWriter, r *http.Request, name string) error {
	var hello wire.Hello
	if err := read(r, wire.MaxMessage, &hello); err != nil {
		return err
	}
	if err := h.welcome(hello); err != nil {
		return err
	}
	if !h.ready.Load() {
		return errEnds
	}
	hello.Version = run.Bounded(hello.Version, run.MaxType)
	worker, ctx, leave, err := h.registry.connect(r.Context(), name, hello)
	var late *lateHello
	if errors.As(err, &late) {
		w.Header().Set(wire.HeaderLast, strconv.FormatInt(late.last, 10))
		return late.error
	}
	defer leave()
	if _, err := h.member(name); fault.Is(err, fault.NotFound) { // it was removed while it asked
		return errors.Join(errRemoved, h.forget(ctx, name))
	}
	over, err := sessions(h).overOf(ctx, name, hello.Sessions)
	if err != nil {
		return err
	}
	for _, id := range over {
		worker.put(restOrder(id), wire.Order{Over: id})
	}
	httpwire.BeginStream(w, "application/x-ndjson")
	return h.send(ctx, w, worker)
}

// welcome refuses a worker that has joined another server, or is of a version that this one doesn't know.
func (h face) welcome(hello wire.Hello) error {
	if hello.Protocol > wire.Protocol {
		return fault.New(fault.Unsupported, "the worker is newer than this server").
			WithHint("update the server before its workers")
	}
	if hello.Protocol < wire.Protocol-1 {
		return fault.New(fault.Unsupported, "the worker is too old for this server").
			WithHint("update the program on its machine; what runs there goes on")
	}
	if hello.Home != h.process.Home.Owner {
		return fault.New(fault.Forbidden, "the worker has joined another server than this one").
			WithHint("`aod worker add` at this server, and join with a data directory of its own")
	}
	if len(hello.Node) > maxNode {
		return fault.New(fault.BadRequest, "the id of a node has at most %d characters", maxNode)
	}
	if hello.Slots < 1 || hello.Slots > 10_000 || len(hello.Labels) > maxLabels {
		return fault.New(fault.BadRequest, "a worker has 1 to 10000 slots, and at most %d labels", maxLabels)
	}
	for _, label := range hello.Labels {
		if err := api.CheckLabel(label); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxLabels = 64
	maxNode   = 64 // characters of a node's id
)

// send writes the orders that there are and those that come, and a beat where there are none.
func (h face) send(ctx context.Context, w http.ResponseWriter, to *worker) error {
	beat := time.NewTicker(wire.Beat)
	defer beat.Stop()
	sent, out := map[string]int64{}, json.NewEncoder(w)
	out.SetEscapeHTML(false)
	flush := http.NewResponseController(w)
	for {
		for _, order := range append(to.box.unsent(sent), wire.Order{}) {
			if err := out.Encode(order); err != nil {
				return err
			}
		}
		if err := flush.Flush(); err != nil {
			return err
		}
		select {
		case <-to.box.news:
		case <-beat.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// renew notes that a worker is there, and tells it what it holds in vain.
func (h face) renew(w http.ResponseWriter, r *http.Request, name string) error {
	var held wire.Held
	if err := read(r, wire.MaxMessage, &held); err != nil {
		return err
	}
	if !h.ready.Load() {
		return errEnds
	}
	h.registry.hear(name, held.Closed)
	if held.Closed {
		h.offers.decline(name)
	}
	void, _ := h.leases.compare(name, held)
	if worker := h.registry.find(name); worker != nil {
		worker.box.keepVoid(held.Leases)
		worker.box.keepRest(held.Sessions)
	}
	over, err := sessions(h).overOf(r.Context(), name, held.Sessions)
	if err != nil {
		return err
	}
	return reply(w, wire.Renewed{Void: void, Over: over})
}

// acceptance gives a worker the lease of a run that it accepts.
func (h face) acceptance(w http.ResponseWriter, r *http.Request, name string) error {
	var asked wire.Acceptance
	if err := read(r, httpwire.SmallBody, &asked); err != nil {
		return err
	}
	if asked.Nonce == "" || len(asked.Nonce) > 64 {
		return fault.New(fault.BadRequest, "an acceptance has a nonce")
	}
	l, err := h.accept(r.Context(), name, asked)
	if err == errVoid { //nolint:errorlint // it is that very one
		w.Header().Set(wire.HeaderVoid, "1")
	}
	if err != nil {
		return err
	}
	if err := untilOver(r.Context(), l.led); err != nil {
		return err
	}
	return reply(w, h.assignment(l))
}

func (h face) unit(w http.ResponseWriter, _ *http.Request, l *lease) error {
	w.Header().Set("Content-Type", "application/x-tar")
	return units.Pack(l.run.Unit, w)
}

// secrets answers with the secrets of a program that its worker may have.
func (h face) secrets(w http.ResponseWriter, _ *http.Request, l *lease) error {
	if !h.hasSecrets(l.Worker, l.run.Unit) {
		return fault.New(fault.Forbidden, "the worker may not have the secrets of this run any more")
	}
	values, err := h.secretsOf(l)
	if err != nil {
		return err
	}
	plain := map[string]string{}
	for name, value := range values {
		plain[name] = string(value)
	}
	w.Header().Set("Cache-Control", "no-store")
	return reply(w, plain)
}

// used answers which versions of units are in use of those that a worker has: it removes the images of others.
func (h face) used(w http.ResponseWriter, r *http.Request, _ string) error {
	var asked wire.Used
	if err := read(r, wire.MaxMessage, &asked); err != nil {
		return err
	}
	all, err := h.process.InUse(r.Context())
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, u := range all {
		used[u.Name+"@"+u.Version] = true
	}
	return reply(w, wire.Used{Units: slices.DeleteFunc(asked.Units, func(one string) bool { return !used[one] })})
}

func (h face) project(w http.ResponseWriter, _ *http.Request, l *lease) error {
	if !l.run.Project {
		return fault.New(fault.NotFound, "the run has no project")
	}
	stored, err := workspace.Stored(l.run.BaseDir())
	if err != nil {
		return run.StorageFault(err)
	}
	w.Header().Set("Content-Type", "application/x-tar")
	return stored.WriteTar(w)
}

func (h face) changes(w http.ResponseWriter, r *http.Request, l *lease) error {
	if err := l.putChanges(httpwire.Streamed(r.Context(), r.Body)); err != nil {
		return err
	}
	return done(w)
}

func (h face) input(w http.ResponseWriter, r *http.Request, l *lease) error {
	return serveFile(w, r, l.run.InputDir(), r.PathValue("name"), contract.StageInput)
}

func (h face) incoming(w http.ResponseWriter, r *http.Request, l *lease) error {
	return serveFile(w, r, l.incomingDir(), r.PathValue("name"), contract.StageIncoming)
}

func (h face) report(w http.ResponseWriter, r *http.Request, l *lease) error {
	var told wire.Reported
	if err := read(r, wire.MaxMessage+wire.MaxTold, &told); err != nil {
		return err
	}
	received, err := l.report(r.Context(), told)
	if err != nil {
		return err
	}
	return reply(w, received)
}

func (h face) outputSize(w http.ResponseWriter, r *http.Request, l *lease) error {
	name, err := contract.CleanName(r.PathValue("name"), contract.StageOutput)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "there is no such file")
	}
	size, err := l.have(name)
	if err != nil {
		return err
	}
	w.Header().Set(wire.HeaderSize, strconv.FormatInt(size, 10))
	return done(w)
}

func (h face) output(w http.ResponseWriter, r *http.Request, l *lease) error {
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		return fault.New(fault.BadRequest, "the part of a file says where it begins: ?offset=N")
	}
	body := httpwire.BodyOf(r, wire.MaxPart)
	size, err := l.put(r.PathValue("name"), offset, httpwire.Streamed(r.Context(), body))
	w.Header().Set(wire.HeaderSize, strconv.FormatInt(size, 10))
	if err != nil {
		return body.Or(err)
	}
	return done(w)
}

// endTime bounds how long the worker waits until its word is stored, before it asks again.
const endTime = 20 * time.Second

// end takes how an attempt ended. It is answered when that is stored.
func (h face) end(w http.ResponseWriter, r *http.Request, l *lease) error {
	var told wire.Ended
	if err := read(r, l.run.Limits.ResultBytes+wire.MaxMessage, &told); err != nil {
		return err
	}
	if err := untilOver(r.Context(), l.led); err != nil {
		return err
	}
	if !l.telling.has(told.Said) {
		return fault.New(fault.Unavailable, "what the program said has to come before its end")
	}
	l.tell(func() {
		if l.ended == nil {
			l.ended = &told
		}
	})
	ctx, cancel := context.WithTimeout(r.Context(), endTime)
	defer cancel()
	select {
	case <-l.settled:
		return done(w)
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "the end isn't stored yet").WithHint("tell it again")
	}
}

func (h face) gone(w http.ResponseWriter, _ *http.Request, l *lease) error {
	l.tell(func() { l.gone = true })
	return done(w)
}

func (h face) transfer(w http.ResponseWriter, r *http.Request, l *lease) error {
	of := l.transferOf(r.PathValue("id"))
	if of == nil || of.dir == "" {
		return errVoid
	}
	err := of.receive(httpwire.Streamed(r.Context(), r.Body))
	of.end(err)
	if err != nil {
		return err
	}
	return done(w)
}

func (h face) transferred(w http.ResponseWriter, r *http.Request, l *lease) error {
	var told wire.Transferred
	if err := read(r, wire.MaxMessage, &told); err != nil {
		return err
	}
	of := l.transferOf(r.PathValue("id"))
	switch {
	case of == nil:
		return errVoid
	case told.Error != "":
		of.end(fault.New(fault.Unavailable, "the files of a handoff can't be had from its worker"))
	case of.dir == "":
		of.end(nil)
	}
	return done(w)
}

// api answers what the program of a run asks.
func (h face) api(w http.ResponseWriter, r *http.Request, l *lease) error {
	prefix := wire.Leases + l.ID + "/" + wire.API
	path, is := strings.CutPrefix(r.URL.Path, prefix)
	if !is || !strings.HasPrefix(path, "/") {
		return fault.New(fault.NotFound, "there is nothing at this address")
	}
	return l.answer(w, r, path)
}

// slot takes whether a run does without its slot. It is asked for again where that takes long.
func (h face) slot(w http.ResponseWriter, r *http.Request, l *lease) error {
	var told wire.Loan
	if err := read(r, httpwire.SmallBody, &told); err != nil {
		return err
	}
	l.tell(func() { l.lent = told.Lent })
	if told.Lent {
		return done(w)
	}
	ctx, cancel := context.WithTimeout(r.Context(), endTime)
	defer cancel()
	if l.repaid(ctx) != nil {
		return fault.New(fault.Unavailable, "the run hasn't its slot again yet").WithHint("ask again")
	}
	return done(w)
}
