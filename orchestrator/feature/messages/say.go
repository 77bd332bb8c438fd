package messages

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// SayOnce is Say with a client's own key; "" is none.
func (f *Feature) SayOnce(
	ctx context.Context, id, key string, m api.MessageEvent, files *spool.Spool,
) (said api.MessageEvent, err error) {
	once := run.Once{Fingerprint: run.DigestOfMessage(m)}
	if key != "" {
		once.Key = "say/" + id + "/" + key
	}
	return f.Say(ctx, id, once, m, files)
}

// Say stores a message to a run that goes on, of which its program and whoever listens to its events
// hear. One without an id gets one; its role is that of a user. The same message again under the same key
// changes nothing, and another one is an Input fault; without a key each is stored. The error is a
// NotFound fault for an unknown run, a Conflict fault for one that is over, a TooLarge fault beyond 1,000
// messages or 16 MiB of them, and an Input fault for what isn't a message. Files can't be placed in a run
// that may have begun: they are an Input fault, and are removed in any case. It returns the message as it
// was given, with its id and its time.
func (f *Feature) Say(
	ctx context.Context, id string, once run.Once, m api.MessageEvent, files *spool.Spool,
) (said api.MessageEvent, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	if f == nil {
		return m, fault.New(fault.Unsupported, "runs hear no messages at this server")
	}
	if err := f.process.Gate.Writable(ctx); err != nil {
		return m, err
	}
	if m, err = saidNow(m, files); err != nil {
		return m, err
	}
	if _, err := f.process.Library.RunDir(ctx, id); err != nil {
		return m, err
	}
	p := f.partOf(id)
	if p == nil {
		return m, tooLate()
	}
	return m, p.hear(ctx, m, once)
}

// saidNow completes a message and checks it.
func saidNow(m api.MessageEvent, files *spool.Spool) (api.MessageEvent, error) {
	if err := run.CompleteMessage(&m); err != nil {
		return m, err
	}
	if m.Role != api.RoleUser {
		return m, fault.New(fault.Input, "the message is not in the role of a user")
	}
	withFile := len(files.Files()) > 0
	for _, part := range m.Parts {
		withFile = withFile || part.File != nil
	}
	if withFile {
		return m, fault.New(fault.Input, "a message to a run that goes on can have no files").
			WithHint("give files when the run is asked for, or send what is in them as text or data")
	}
	return m, api.CheckMessage(m)
}

// read reads messages of a run that come after one. more says that there may be others.
func (f *Feature) read(
	ctx context.Context, id string, after int64, limit int,
) (found []api.HeardMessage, more bool, err error) {
	events, err := f.process.Events.Told(context.WithoutCancel(ctx), id, string(api.EventMessage), after, limit)
	found = make([]api.HeardMessage, len(events))
	for i, e := range events {
		found[i].N = e.Seq
		if err := json.Unmarshal(e.Data, &found[i].MessageEvent); err != nil {
			return nil, false, run.Corrupt(err)
		}
	}
	return found, store.Full(events, limit), err
}

// List returns a part of the messages of a run, those that come after one with a number, in their order.
// The limit is 1 to 1000; 0 is 100. An unknown run is a NotFound fault.
func (f *Feature) List(ctx context.Context, id string, after int64, limit int) (api.MessagePage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.MessagePage{}, err
	}
	if f == nil {
		return api.MessagePage{}, fault.New(fault.Unsupported, "runs hear no messages at this server")
	}
	if _, err := f.process.Library.RunDir(ctx, id); err != nil {
		return api.MessagePage{}, err
	}
	found, more, err := f.read(ctx, id, after, limit)
	page := api.MessagePage{Messages: found}
	if more {
		page.Next = &found[len(found)-1].N
	}
	return page, err
}
