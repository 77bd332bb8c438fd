package handoff

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// Start has a call made, and returns its id, a lower-case UUID. A call with a key that was
// used before is not counted again, and joins what the key made; so does one with Recall
// that joins a call of an earlier attempt. The error is a *Refusal
// where a rule is against the call; else it is a fault, or the cause for which ctx ended.
func (b *Broker) Start(ctx context.Context, asked Request) (id string, err error) {
	return b.StartRead(ctx, func() (Request, error) { return asked, nil })
}

// StartRead is Start for a request that has to be read first. It calls read when it is the
// call's turn: at most 4 calls of one caller are read and started at a time.
func (b *Broker) StartRead(ctx context.Context, read func() (Request, error)) (id string, err error) {
	select {
	case b.starting <- struct{}{}:
		defer func() { <-b.starting }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { b.tally.count(err) }()
	asked, err := read()
	if err != nil {
		return "", err
	}
	return b.start(ctx, asked)
}

// start has the call made, if every rule and the orchestrator allow it.
func (b *Broker) start(ctx context.Context, asked Request) (id string, err error) {
	began := time.Now()
	unit, err := b.permit(ctx, asked.Target)
	if err != nil {
		return "", err
	}
	call, files, err := b.prepare(ctx, unit, asked)
	if err != nil {
		return "", err
	}
	key, err := b.keys.enter(ctx, asked.Key)
	if err != nil {
		return "", err
	}
	defer b.keys.leave(asked.Key, key)
	if id, err = b.startWithFiles(ctx, call, files, key); err != nil {
		return "", err
	}
	b.log.InfoContext(ctx, "handoff accepted", "handoff", id, "duration_ms", time.Since(began).Milliseconds())
	return id, nil
}

// permit returns the unit, if the caller may call it now.
func (b *Broker) permit(ctx context.Context, target string) (*Unit, error) {
	unit, err := b.Unit(ctx, target)
	if err != nil {
		return nil, err
	}
	return unit, b.rules.check(unit)
}

// prepare checks the arguments, and makes the call and the list of its files of them.
func (b *Broker) prepare(ctx context.Context, unit *Unit, asked Request) (Call, attachments, error) {
	args, err := asked.arguments(ctx, unit, b.limits.ArgsBytes)
	if err != nil {
		return Call{}, attachments{}, err
	}
	files, args, err := b.outgoing.attachmentsOf(unit, asked, args)
	if err != nil {
		return Call{}, attachments{}, err
	}
	return Call{
		Target: unit, Args: args, Timeout: asked.Timeout, Deadline: b.caller.Deadline, Key: asked.Key, Step: asked.Step,
		Recall: asked.Recall,
	}, files, nil
}

// startWithFiles opens the files, and starts the call while they are open.
func (b *Broker) startWithFiles(ctx context.Context, call Call, files attachments, key *key) (id string, err error) {
	call.Files, err = b.outgoing.open(ctx, files)
	defer func() {
		for _, f := range call.Files {
			f.Close()
		}
	}()
	if err != nil {
		return "", err
	}
	return b.spendAndStart(ctx, call, key)
}

// spendAndStart counts the call, unless its key was counted before, and starts it. A call
// that is recalled was counted when it was made.
func (b *Broker) spendAndStart(ctx context.Context, call Call, key *key) (id string, err error) {
	if key.counted {
		return b.runs.Start(ctx, call)
	}
	if call.Recall {
		if id, err = b.runs.Recall(ctx, call); err != nil || id != "" {
			return id, err
		}
	}
	if err := b.caller.Tree.Spend(b.caller.Path, b.limits); err != nil {
		return "", err
	}
	if id, err = b.runs.Start(ctx, call); err != nil {
		b.caller.Tree.refund(b.caller.Path)
		return "", err
	}
	key.counted = call.Key != ""
	return id, nil
}

// StartSession has a call made of a unit that talks with its caller: extra is the caller's
// end, which the unit's kind understands. It returns the id of the run. The call itself
// spends nothing; see Spend. The errors are those of Start.
func (b *Broker) StartSession(ctx context.Context, target string, extra any) (id string, err error) {
	defer func() { b.tally.count(err) }()
	unit, err := b.permit(ctx, target)
	if err != nil {
		return "", err
	}
	args, err := contract.Decode(json.RawMessage("{}"), b.limits.ArgsBytes)
	if err != nil {
		return "", err
	}
	return b.runs.Start(ctx, Call{Target: unit, Args: args, Deadline: b.caller.Deadline, Extra: extra})
}

// Spend counts one call of a session, or refuses it as Start does.
func (b *Broker) Spend() error { return b.caller.Tree.Spend(b.caller.Path, b.limits) }
