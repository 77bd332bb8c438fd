package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// signOfLife is how often a client that asked hears of a run that says nothing by itself.
const signOfLife = 10 * time.Second

// teller tells a client how far its call is.
type teller struct {
	session *sdk.ServerSession
	token   any
	began   time.Time
	last    float64
	total   float64
}

// tellProgress tells a client that asked for it how far a run is, until stop is called.
func tellProgress(ctx context.Context, svc Service, req *sdk.CallToolRequest, id string) (stop func()) {
	token := req.Params.Meta["progressToken"]
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &teller{session: req.Session, token: token, began: time.Now()}
	var done sync.WaitGroup
	done.Go(func() {
		_ = httpwire.Catch(func() error { t.tell(ctx, svc, id); return nil }) // nobody waits for it
	})
	return func() { cancel(); done.Wait() }
}

func (t *teller) tell(ctx context.Context, svc Service, id string) {
	events, wait := httpwire.Pump(ctx, svc.Events(ctx, id, 0))
	defer wait()
	ticker := time.NewTicker(signOfLife)
	defer ticker.Stop()
	for {
		select {
		case item, more := <-events:
			if !more || item.Err != nil {
				events = nil
				continue
			}
			t.event(ctx, item.Value)
		case <-ticker.C:
			t.waits(ctx, svc, id)
		case <-ctx.Done():
			return
		}
	}
}

// event tells what a run says of itself.
func (t *teller) event(ctx context.Context, e api.Event) {
	data, err := e.Decode()
	said, ok := data.(api.ProgressEvent)
	if err != nil || !ok {
		return
	}
	text := said.Message
	switch {
	case text == "":
		text = said.Step
	case said.Step != "":
		text = said.Step + ": " + text
	}
	t.say(ctx, text, said.Percent)
}

// waits tells of a run that says nothing by itself.
func (t *teller) waits(ctx context.Context, svc Service, id string) {
	record, err := svc.Get(ctx, id)
	if err != nil {
		return
	}
	t.say(ctx, fmt.Sprintf("%s %s", record.State.Status(), time.Since(t.began).Round(time.Second)), nil)
}

// say sends one notification. Its number grows each time, as the protocol wants it.
func (t *teller) say(ctx context.Context, text string, percent *float64) {
	const step = 0.001
	t.last += step
	if percent != nil {
		t.last, t.total = max(t.last, *percent), 100
	}
	_ = t.session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that has gone hears nothing
		ProgressToken: t.token, Message: text, Progress: t.last, Total: t.total,
	})
}
