package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Host has the servers of a Door's sessions.
type Host interface {
	// Rules returns the rules of a session with a unit, or a fault where there can't be one.
	Rules(ctx context.Context, unit string) (Options, error)
	// Start has a server talk with the session, and returns when that is accepted. When the
	// server can't be, it ends the session.
	Start(ctx context.Context, unit string, s *Session) error
}

// Prefix is the path of a Door; the name of a unit follows.
const Prefix = "/mcp/"

// Patterns are the addresses of a Door, as http.ServeMux writes them.
func Patterns() []string {
	const path = Prefix + "{unit}"
	return []string{"DELETE " + path, "GET " + path, "POST " + path}
}

func unitOf(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, Prefix) }

// Door offers sessions over streamable HTTP, each with one unit. The path says with which.
type Door struct {
	host Host
	opts DoorOptions

	mu       sync.Mutex
	sessions map[string]*visit
}

// DoorOptions are the settings of a Door.
type DoorOptions struct {
	Sessions int // of one client at once; for a further one the one ends that is idle for longest
	// Admit counts a session of a client until leave is called, or refuses it; nil: each is admitted.
	Admit   func(ctx context.Context) (leave func(), err error)
	Logger  *slog.Logger
	Problem func(error) httpwire.Problem // nil: httpwire.ProblemOf
}

// NewDoor returns a Door without sessions.
func NewDoor(host Host, opts DoorOptions) *Door {
	if opts.Problem == nil {
		opts.Problem = httpwire.ProblemOf
	}
	if opts.Admit == nil {
		opts.Admit = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return &Door{host: host, opts: opts, sessions: map[string]*visit{}}
}

const (
	sessionHeader  = "Mcp-Session-Id"
	revisionHeader = "Mcp-Protocol-Version"
)

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.Method {
	case http.MethodPost:
		err = d.post(w, r)
	case http.MethodGet:
		err = d.get(w, r)
	case http.MethodDelete:
		err = d.delete(w, r)
	default:
		w.Header().Set("Allow", "DELETE, GET, POST")
		d.problem(w, httpwire.MethodNotAllowed())
	}
	if err != nil {
		d.problem(w, d.opts.Problem(err))
	}
}

func (d *Door) problem(w http.ResponseWriter, p httpwire.Problem) {
	_ = httpwire.ReplyProblem(w, p) // the client has gone
}

// post takes a message of a client's.
func (d *Door) post(w http.ResponseWriter, r *http.Request) error {
	if err := httpwire.RequireJSON(r); err != nil {
		return err
	}
	v, missing := d.visitOf(r)
	opens := r.Header.Get(sessionHeader) == ""
	if missing != nil && !opens {
		return missing
	}
	if v != nil {
		v.touch()
	}
	text, err := readMessage(r, opens)
	if err != nil {
		return err
	}
	m, err := read(text)
	if err != nil {
		return answer(w, http.StatusBadRequest, refusal(nil, unreadable(err)))
	}
	if asked := cut(r.Header.Get(revisionHeader)); asked > "2026" || newer(m) != "" {
		return answer(w, http.StatusBadRequest, unsupported(m.id, max(asked, newer(m))))
	}
	if opens && m.method == methodInitialize && m.isRequest() {
		v, missing = d.open(r)
	}
	if missing != nil {
		return missing
	}
	w.Header().Set(sessionHeader, v.id)
	if m.isRequest() {
		return v.answer(w, r, m)
	}
	if err := v.session.fromClient(r.Context(), m); err != nil && v.session.Err() != nil {
		return gone(err)
	} else if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// maxOpening bounds a message that may begin a session, in bytes.
const maxOpening = 64 << 10

// readMessage reads the body of a request, of which no more is taken than a session needs that has
// still to begin.
func readMessage(r *http.Request, opens bool) ([]byte, error) {
	most := int64(MaxMessage)
	if opens {
		most = maxOpening
	}
	body := httpwire.BodyOf(r, most)
	text, err := io.ReadAll(body)
	return text, body.Or(err)
}

// answer sends one message as JSON.
func answer(w http.ResponseWriter, status int, m message) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = bytes.NewReader(m.text).WriteTo(w) // the client has gone
	return nil
}

func gone(err error) error {
	return fault.New(fault.NotFound, "the session is over: %s", reason(err)).WithHint("begin a new one with initialize")
}

// visitOf returns the session that a request names. One that is over isn't there, also until it
// has left.
func (d *Door) visitOf(r *http.Request) (*visit, error) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil, fault.New(fault.BadRequest, "the header %s is missing", sessionHeader).
			WithHint("begin a session with initialize, whose answer has the header")
	}
	d.mu.Lock()
	v := d.sessions[id]
	d.mu.Unlock()
	if v == nil || v.unit != unitOf(r) || v.owner != httpwire.OwnerOf(r.Context()) || v.session.Err() != nil {
		return nil, fault.New(fault.NotFound, "there is no such session with this unit").
			WithHint("it is over; begin a new one with initialize")
	}
	return v, nil
}

// open begins a session.
func (d *Door) open(r *http.Request) (*visit, error) {
	unit := unitOf(r)
	rules, err := d.host.Rules(r.Context(), unit)
	if err != nil {
		return nil, err
	}
	leave, err := d.opts.Admit(r.Context())
	if err != nil {
		return nil, err
	}
	v := newVisit(rand.Text(), unit, bytegate.HolderOf(r.Context()), rules)
	v.owner = httpwire.OwnerOf(r.Context())
	if err := d.enter(v); err != nil {
		v.session.End(ErrClientLeft)
		leave()
		return nil, err
	}
	go func() {
		<-v.session.Done()
		d.leave(v)
		leave()
	}()
	if err := d.host.Start(r.Context(), unit, v.session); err != nil {
		v.session.End(err)
		return nil, err
	}
	return v, nil
}

func (d *Door) enter(v *visit) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	count, oldest := d.sessionsOf(v.holder)
	switch {
	case count < d.opts.Sessions:
	case oldest == nil:
		return fault.New(fault.Unavailable, "%d sessions are open, all in use, and no more can be", count).
			WithHint("end one of them with DELETE, or try again later")
	default:
		delete(d.sessions, oldest.id)
		oldest.session.End(ErrDisplaced)
	}
	d.sessions[v.id] = v
	return nil
}

// sessionsOf counts the sessions of a client, and finds the one that is idle for longest; nil: none
// is. The caller holds the lock.
func (d *Door) sessionsOf(holder string) (count int, oldest *visit) {
	var longest time.Time
	for _, v := range d.sessions {
		if v.holder != holder {
			continue
		}
		count++
		if since, idle := v.idle(); idle && (oldest == nil || since.Before(longest)) {
			oldest, longest = v, since
		}
	}
	return count, oldest
}

func (d *Door) leave(v *visit) {
	d.mu.Lock()
	delete(d.sessions, v.id)
	d.mu.Unlock()
	err := v.session.Err()
	if v.session.EndedWell() || errors.Is(err, context.Canceled) {
		return
	}
	d.opts.Logger.Info("mcp session ended", "unit", v.unit, fault.LogAttr(err))
}

// get streams what the server says by itself.
func (d *Door) get(w http.ResponseWriter, r *http.Request) error {
	v, err := d.visitOf(r)
	if err != nil {
		return err
	}
	if !strings.Contains(r.Header.Get("Accept"), eventStream) {
		return fault.New(fault.BadRequest, "the header Accept has to name %s", eventStream)
	}
	return v.listen(w, r)
}

func (d *Door) delete(w http.ResponseWriter, r *http.Request) error {
	v, err := d.visitOf(r)
	if err != nil {
		return err
	}
	v.session.End(ErrClientLeft)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
