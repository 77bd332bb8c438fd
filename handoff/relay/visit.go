package relay

import (
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const eventStream = "text/event-stream"

// visit is a session over HTTP. What the server says goes to the requests of its client that
// are open.
type visit struct {
	id, unit string
	holder   string // for whom it counts
	owner    string // who began it: others don't find it
	session  *Session

	mu      sync.Mutex
	asking  []*stream // POSTs with a request, oldest first
	general *stream   // the GET; nil: there is none
	kept    []message // what found no stream
	bytes   int
	used    time.Time // when the last stream was open
}

// stream is an answer that may take several messages.
type stream struct {
	id       string // of the request; "" for GET
	token    string // of its progress, as JSON; "" is none
	messages chan message
	gone     chan struct{} // closed when its client has
}

// What is kept until a stream is open. More of it is dropped.
const (
	maxKept      = 100
	maxKeptBytes = 1 << 20
)

func newVisit(id, unit, holder string, rules Options) *visit {
	v := &visit{id: id, unit: unit, holder: holder, used: time.Now()}
	v.session = newSession(rules, v.send)
	return v
}

// send gives a message to the stream that it belongs to.
func (v *visit) send(m message) error {
	for {
		to := v.streamFor(m)
		if to == nil {
			return nil
		}
		select {
		case to.messages <- m:
			return nil
		case <-to.gone:
		case <-v.session.done:
			return nil
		}
	}
}

// streamFor returns the stream of a message. A message without one is kept, or dropped where
// its client doesn't wait for it any more.
func (v *visit) streamFor(m message) *stream {
	v.mu.Lock()
	defer v.mu.Unlock()
	token := ""
	if m.method == methodProgress {
		token = string(field(m.params, "progressToken"))
	}
	for _, s := range v.asking {
		if m.isResponse() && s.id == string(m.id) || token != "" && s.token == token {
			return s
		}
	}
	switch {
	case m.isResponse():
		return nil
	case len(v.asking) > 0:
		return v.asking[0]
	case v.general != nil:
		return v.general
	}
	if len(v.kept) < maxKept && v.bytes+len(m.text) <= maxKeptBytes {
		v.kept = append(v.kept, m)
		v.bytes += len(m.text)
	}
	return nil
}

// add opens a stream, which begins with what was kept.
func (v *visit) add(s *stream) (kept []message, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case s.id != "":
		v.asking = append(v.asking, s)
	case v.general != nil:
		return nil, fault.New(fault.Conflict, "the session has a GET stream already")
	default:
		v.general = s
	}
	kept, v.kept, v.bytes = v.kept, nil, 0
	return kept, nil
}

func (v *visit) remove(s *stream) {
	close(s.gone)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.used = time.Now()
	if v.general == s {
		v.general = nil
	}
	for i, each := range v.asking {
		if each == s {
			v.asking = append(v.asking[:i:i], v.asking[i+1:]...)
			return
		}
	}
}

// touch notes that its client is there.
func (v *visit) touch() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.used = time.Now()
}

// idle reports since when no stream is open; false: one is.
func (v *visit) idle() (since time.Time, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.used, len(v.asking) == 0 && v.general == nil
}

func newStream(m message) *stream {
	return &stream{
		id: string(m.id), token: string(field(field(m.params, "_meta"), "progressToken")),
		messages: make(chan message), gone: make(chan struct{}),
	}
}

// answer passes a request on, and sends its answer with all that comes before it.
func (v *visit) answer(w http.ResponseWriter, r *http.Request, m message) error {
	s := newStream(m)
	kept, err := v.add(s)
	if err != nil {
		return err
	}
	defer v.remove(s)
	failed := make(chan error, 1)
	go func() { failed <- v.session.fromClient(r.Context(), m) }()
	out := &sender{w: w, last: s.id}
	if err := out.all(kept); err != nil {
		return nil // the client has gone
	}
	return v.pump(r, s, out, failed)
}

// listen sends what the server says by itself until the client goes or the session is over.
func (v *visit) listen(w http.ResponseWriter, r *http.Request) error {
	end, err := httpwire.OpenStream(r.Context())
	if err != nil {
		return err
	}
	defer end()
	s := newStream(message{})
	kept, err := v.add(s)
	if err != nil {
		return err
	}
	defer v.remove(s)
	out := &sender{w: w}
	out.begin()
	if err := out.all(kept); err != nil {
		return nil // the client has gone
	}
	return v.pump(r, s, out, nil)
}

// pump sends the messages of a stream up to its answer.
func (v *visit) pump(r *http.Request, s *stream, out *sender, failed <-chan error) error {
	alive := time.NewTicker(httpwire.Heartbeat)
	defer alive.Stop()
	for {
		select {
		case m := <-s.messages:
			if over, err := out.message(m); over || err != nil {
				return nil // the client has gone
			}
		case err := <-failed:
			if err != nil && v.session.Err() == nil && out.events == nil {
				return err
			}
			if err != nil {
				return out.end(err)
			}
			failed = nil
		case <-alive.C:
			if out.alive() != nil {
				return nil
			}
		case <-v.session.done:
			return out.end(v.session.Err())
		case <-r.Context().Done():
			return nil
		}
	}
}

// sender writes one answer: JSON where it is one message, else a stream of events.
type sender struct {
	w      http.ResponseWriter
	last   string // id of the message that ends it; "": none does
	events *httpwire.EventWriter
}

func (o *sender) begin() {
	if o.events == nil {
		httpwire.BeginStream(o.w, eventStream)
		o.events = httpwire.NewEventWriter(o.w)
	}
}

func (o *sender) all(messages []message) error {
	for _, m := range messages {
		if _, err := o.message(m); err != nil {
			return err
		}
	}
	return nil
}

// message writes a message, and reports whether it was the last one.
func (o *sender) message(m message) (over bool, err error) {
	over = m.isResponse() && o.last != "" && string(m.id) == o.last
	if over && o.events == nil {
		return true, answer(o.w, http.StatusOK, m)
	}
	o.begin()
	return over, o.events.Write(httpwire.Event{Name: "message", Data: string(m.text)})
}

// alive shows the client that it is still connected.
func (o *sender) alive() error {
	o.begin()
	return o.events.Comment("alive")
}

// end ends the answer of a session that is over.
func (o *sender) end(cause error) error {
	if o.last == "" {
		return nil
	}
	if o.events == nil {
		return gone(cause)
	}
	// the client has gone
	_, _ = o.message(refusal([]byte(o.last),
		failure{Code: codeServer, Message: "the session is over: " + reason(cause)}))
	return nil
}
