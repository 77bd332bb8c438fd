package capsuleapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// maxMessageWait is how long a request waits for a message at most.
const maxMessageWait = 30 * time.Second

// messageList is the answer to GET /messages.
type messageList struct {
	Messages []api.HeardMessage `json:"messages"`
}

// MessageMount tells a run what was said to it. read returns what was said after the message with a
// number, in order and not necessarily all of it. It waits for a first one until ctx ends, and returns
// nothing then. Another Mount may have the other methods of its path: a model is asked there, too.
func MessageMount(read func(ctx context.Context, after int64) ([]api.HeardMessage, error)) Mount {
	return Mount{Path: "/messages", actions: func(s responder, _ *handoff.Broker) map[string]action {
		return map[string]action{http.MethodGet: messages{s, read}.get}
	}}
}

// messages tells a run what was said to it.
type messages struct {
	responder responder
	read      func(ctx context.Context, after int64) ([]api.HeardMessage, error)
}

// get answers with what was said to the run, at once where there is something.
func (m messages) get(w http.ResponseWriter, r *http.Request) error {
	after, wait, err := messagesOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	found, err := m.read(ctx, after)
	switch {
	case err != nil:
		return err
	case len(found) == 0 && r.Context().Err() != nil:
		return fault.New(fault.Unavailable, "the server ends before there is a message").
			WithHint("ask again soon, for what comes after the last one")
	case found == nil:
		found = []api.HeardMessage{}
	}
	return m.responder.reply(w, r, http.StatusOK, messageList{found})
}

// messagesOf reads ?after, the number of a message, and ?wait, a duration.
func messagesOf(r *http.Request) (after int64, wait time.Duration, err error) {
	values, err := queryOf(r, "after", "wait")
	if err != nil {
		return 0, 0, err
	}
	if text := values.Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return 0, 0, fault.New(fault.BadRequest, `the query parameter "after" is not valid`).
				WithHint("it is the number of a message, n")
		}
	}
	text := values.Get("wait")
	if text == "" {
		return after, 0, nil
	}
	wait, ok := httpwire.Wait(text)
	if !ok || wait > maxMessageWait {
		return 0, 0, fault.New(fault.BadRequest, `the query parameter "wait" is not valid`).
			WithHint("it is a duration from 0s to %v, such as 10s", maxMessageWait)
	}
	return after, wait, nil
}
