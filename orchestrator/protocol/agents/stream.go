package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// eventOrError is one event of a run, or the error that ended its events.
type eventOrError = httpwire.Item[api.Event]

// progressWriter streams the events of a task's run to the client. It reads them from the
// store, as fast as the client takes them, so that the run never waits for the client.
type progressWriter struct {
	*call
	svc Service
	run string
	out *httpwire.EventWriter

	own      bool  // errors have the contract's own codes: Policy.Refuse200
	trouble  error // why nothing more can be learnt of the run
	panicked error // the panic that ended the stream
}

// stream does a task and streams its progress. Whatever happens to the run or to this server,
// the last event is the terminal one.
func (h *handler) stream(c *call) error {
	end, err := httpwire.OpenStream(c.r.Context())
	if err != nil {
		return err
	}
	defer end()
	record, err := h.begin(c)
	if code := h.refuses200(c.task, err); code != "" {
		c.streamRefusal(err, code)
		return nil
	}
	if err != nil {
		return err
	}
	request := c.r.Context()
	ctx, stop := httpwire.Attached(request)
	defer stop()
	events, wait := httpwire.Pump(ctx, h.svc.Events(ctx, record.ID, 0))
	defer func() {
		stop() // the pump may be waiting for an event, or for us
		wait()
	}()
	httpwire.BeginStream(c.w, httpwire.TypeEvents)
	s := &progressWriter{call: c, svc: h.svc, run: record.ID, out: httpwire.NewEventWriter(c.w)}
	s.own = h.opts.Refuse200[c.task.unit]
	here := false
	if s.panicked = httpwire.Catch(func() error { here = s.follow(ctx, events); return nil }); s.panicked != nil {
		here = true // it is told of that too
	}
	if !here || request.Err() != nil {
		h.abandon(request, c.task, record.ID)
		return nil // there is nobody to be told
	}
	s.finish()
	return nil
}

// EventData is the data of started and progress.
type EventData struct {
	Type      agenthttp.EventType `json:"type"` // the event's name
	RequestID string              `json:"request_id"`
	TaskType  string              `json:"task_type,omitempty"`
	RunID     string              `json:"run_id,omitempty"`

	State   api.State `json:"state,omitempty"` // that the run entered
	Attempt int       `json:"attempt,omitempty"`

	Percent *float64 `json:"percent,omitempty"` // and what follows: the unit's own word
	Step    string   `json:"step,omitempty"`
	Message string   `json:"message,omitempty"`
}

// follow streams the run's events until the run has its outcome or its events end. It reports
// whether the client is still there.
func (s *progressWriter) follow(ctx context.Context, events <-chan eventOrError) bool {
	beat := time.NewTicker(httpwire.Heartbeat)
	defer beat.Stop()
	err := s.send(agenthttp.Started, EventData{TaskType: s.task.TaskType, RunID: s.run})
	for err == nil {
		select {
		case h, more := <-events:
			if h.Err != nil && ctx.Err() == nil {
				s.trouble = fmt.Errorf("read events: %w", h.Err)
			}
			if !more || h.Err != nil || s.isLast(ctx, h.Value) {
				return true
			}
			beat.Reset(httpwire.Heartbeat)
			err = s.pass(h.Value)
		case <-beat.C:
			err = s.out.Comment("still here")
		}
	}
	return false
}

// ends are the states in which a run may have its outcome. Another attempt may follow.
var ends = []api.State{api.Completed, api.Failed, api.Timeout, api.Cancelled}

// isLast reports whether the run has its outcome with this event. The events of its cleaning
// up are not streamed.
func (s *progressWriter) isLast(ctx context.Context, event api.Event) bool {
	if event.Type == api.EventEnd {
		return true
	}
	if event.Type != api.EventState || !slices.Contains(ends, eventOf(event).State) {
		return false
	}
	record, err := s.svc.Get(ctx, s.run)
	return err == nil && ended(record)
}

// pass sends the events that a client gets: the unit's progress and the run's states.
func (s *progressWriter) pass(event api.Event) error {
	e := eventOf(event)
	if event.Type != api.EventProgress && (event.Type != api.EventState || e.State == api.Idle) {
		return nil
	}
	return s.send(agenthttp.Progress, e)
}

// eventOf converts a stored event to the data of a streamed one. Unreadable data is left out.
func eventOf(event api.Event) EventData {
	data, _ := event.Decode()
	switch data := data.(type) {
	case api.Transition:
		return EventData{State: data.State, Attempt: data.Attempt}
	case api.ProgressEvent:
		return EventData{Percent: data.Percent, Step: data.Step, Message: data.Message}
	}
	return EventData{}
}

func (s *progressWriter) send(kind agenthttp.EventType, e EventData) error {
	e.Type, e.RequestID = kind, s.task.RequestID
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return s.out.Write(httpwire.Event{Name: string(kind), Data: string(raw)})
}

// finish writes the terminal event, also after a panic (section "Stream invariant"), unless
// the client has gone.
func (s *progressWriter) finish() {
	var last []byte
	err := s.panicked
	if err == nil {
		err = httpwire.Catch(func() error { last = s.terminal(); return nil })
	}
	if err != nil {
		last = s.lastResort(err)
	}
	_ = s.out.Write(httpwire.Event{Name: string(agenthttp.Final), Data: string(last)})
}

// terminal returns the terminal event: the run's outcome, or why it is not known.
func (s *progressWriter) terminal() []byte {
	record, err := s.svc.Get(context.WithoutCancel(s.r.Context()), s.run)
	if err == nil && !ended(record) {
		err = s.trouble
	}
	if err != nil {
		return s.lastResort(err)
	}
	if err := taskError(record); err != nil {
		return s.refusal(err)
	}
	answer := s.task.answer(record)
	answer.Type = agenthttp.Final
	raw, err := json.Marshal(answer)
	if err != nil {
		return s.lastResort(err)
	}
	return raw
}

// lastResort returns the terminal event of a stream whose outcome can't be sent.
func (s *progressWriter) lastResort(err error) []byte {
	s.notes.Report(err, true)
	return s.refusal(err)
}

func (s *progressWriter) refusal(err error) []byte {
	p := httpwire.ProblemOf(err)
	p.Run = s.run
	if s.own {
		p.Code = cmp.Or(contractCode(err), p.Code)
	}
	return s.task.lastRefusal(p)
}
