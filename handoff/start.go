package handoff

import (
	"context"
	"time"
)

// Start has a call made, and returns its id, a lower-case UUID. A call with a key that was
// used before is not counted again, and joins what the key made. The error is a *Refusal
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
	call, load, err := b.argue(unit, asked)
	if err != nil {
		return "", err
	}
	key, err := b.keys.enter(ctx, asked.Key)
	if err != nil {
		return "", err
	}
	defer b.keys.leave(asked.Key, key)
	if id, err = b.launch(ctx, call, load, key); err != nil {
		return "", err
	}
	b.log.InfoContext(ctx, "handoff accepted", "handoff", id, "took", time.Since(began))
	return id, nil
}

// argue makes the call of what was asked, if the arguments are good.
func (b *Broker) argue(unit *Unit, asked Request) (Call, cargo, error) {
	args, err := b.arguments(unit, asked)
	if err != nil {
		return Call{}, cargo{}, err
	}
	load, args, err := b.cargoOf(unit, asked, args)
	if err != nil {
		return Call{}, cargo{}, err
	}
	return Call{Target: unit, Args: args, Timeout: asked.Timeout, Deadline: b.caller.Deadline, Key: asked.Key}, load, nil
}

// launch opens the files, and counts and makes the call while they are open.
func (b *Broker) launch(ctx context.Context, call Call, load cargo, key *key) (id string, err error) {
	call.Files, err = b.carry(ctx, load)
	defer func() {
		for _, f := range call.Files {
			f.close()
		}
	}()
	if err != nil {
		return "", err
	}
	return b.count(ctx, call, key)
}

func (b *Broker) count(ctx context.Context, call Call, key *key) (id string, err error) {
	if key.spent {
		return b.runs.Start(ctx, call)
	}
	if err := b.caller.Tree.Spend(b.caller.Path, b.limits); err != nil {
		return "", err
	}
	if id, err = b.runs.Start(ctx, call); err != nil {
		b.caller.Tree.refund(b.caller.Path)
		return "", err
	}
	key.spent = call.Key != ""
	return id, nil
}
