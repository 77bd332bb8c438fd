package a2a

import (
	"context"
	"errors"
	"iter"
	"strconv"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

var errLeft = errors.New("the subscriber has left")

// streamed yields a task as it stands, and then its changes until its end.
func (h handler) streamed(
	ctx context.Context, history *int, run func(*call) (api.Record, error),
) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		c := callOf(ctx)
		c.reached.Store(true)
		ctx, stop := httpwire.Attached(ctx)
		defer stop()
		err := httpwire.Catch(func() error {
			end, err := httpwire.OpenStream(ctx)
			if err != nil {
				return err
			}
			defer end()
			return h.stream(ctx, c, history, run, yield)
		})
		if err == nil || errors.Is(err, errLeft) {
			return
		}
		r := h.refused(ctx, err)
		c.fail(r)
		yield(nil, r)
	}
}

func (h handler) stream(
	ctx context.Context, c *call, history *int, run func(*call) (api.Record, error), yield func(sdk.Event, error) bool,
) error {
	record, err := run(c)
	if err != nil {
		return err
	}
	v, err := h.viewOf(ctx, c, record)
	if err != nil {
		return err
	}
	c.ready.Store(true)
	c.sends(true)
	if !yield(v.shown(shown{history: history, artifacts: true}), nil) {
		return errLeft
	}
	if v.ended {
		return nil
	}
	v.forget()
	return v.follow(ctx, yield)
}

// follow yields the changes of a task until its end.
func (v *view) follow(ctx context.Context, yield func(sdk.Event, error) bool) error {
	for event, err := range v.svc.Events(ctx, v.record.ID, v.seq) {
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		told, err := v.apply(ctx, event)
		if err != nil {
			return err
		}
		for i, one := range told {
			v.call.sends(i == len(told)-1)
			if !yield(one, nil) {
				return errLeft
			}
		}
		v.forget()
	}
	return nil
}

// forget lets go of what was told, as far as it isn't being sent.
func (v *view) forget() {
	v.task.History = nil
	for i, a := range v.task.Artifacts {
		v.task.Artifacts[i] = &sdk.Artifact{ID: a.ID}
	}
	v.call.drop()
}

// eventID is the id of a message that an event is told with: the same for every subscriber.
func eventID(record api.Record, seq int64) string {
	return record.ID + "-" + strconv.FormatInt(seq, 10)
}
