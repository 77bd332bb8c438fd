package mcp

import (
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api/fault"
)

// visits are the sessions over HTTP, and who has them.
type visits struct {
	server *sdk.Server
	most   int // of one client

	mu   sync.Mutex
	byID map[string]*visit
}

// visit is a session of a client's.
type visit struct {
	holder string    // for whom it counts
	owner  string    // who opened it: it acts for them, and takes their requests alone
	busy   int       // requests and streams that are open
	idle   time.Time // since when none is
	posts  int       // requests that are open, without streams
	deaf   func()    // says that its client can't answer any more
	timer  *time.Timer
}

// post notes requests that begin, or with -1 end. Without any for sessionTime the SDK ends the session.
func (v *visit) post(n int) {
	if v.posts += n; v.posts == 0 {
		v.timer.Reset(sessionTime)
	} else {
		v.timer.Stop()
	}
}

// enter begins a request of a session. The error is a NotFound fault: it isn't there, or another's.
func (v *visits) enter(id, owner, method string) (leave func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.byID[id]
	if known == nil || known.owner != owner || v.sessionOf(id) == nil {
		return nil, fault.New(fault.NotFound, "there is no such session").
			WithHint("it is over; begin a new one with initialize")
	}
	if method == http.MethodDelete {
		known.deaf()
	}
	if method == http.MethodPost {
		known.post(1)
	}
	known.busy++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if method == http.MethodPost {
			known.post(-1)
		}
		known.busy--
		known.idle = time.Now()
	}, nil
}

func (v *visits) sessionOf(id string) *sdk.ServerSession {
	for session := range v.server.Sessions() {
		if session.ID() == id {
			return session
		}
	}
	return nil
}

// add notes a session that was opened; "" is none. deaf is called when its client can't answer any more.
func (v *visits) add(id, holder, owner string, deaf func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id == "" {
		deaf()
		return
	}
	v.byID[id] = &visit{
		holder: holder, owner: owner, idle: time.Now(), deaf: deaf, timer: time.AfterFunc(sessionTime, deaf),
	}
}

// open counts the sessions that go on.
func (v *visits) open() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for session := range v.server.Sessions() {
		if v.byID[session.ID()] != nil {
			n++
		}
	}
	return n
}

// close lets go of the sessions. What their clients are asked stays open.
func (v *visits) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, known := range v.byID {
		known.timer.Stop()
	}
}

// makeRoom makes room for a further session of a client: of those that it has, the one that is idle
// for longest ends. The error is an Unavailable fault: none is idle.
func (v *visits) makeRoom(holder string) error {
	id, err := v.displace(holder)
	if session := v.sessionOf(id); id != "" && session != nil {
		_ = session.Close() // it is over for us in any case
	}
	return err
}

// displace takes out the session that has to end, and returns its id; "": none has to.
func (v *visits) displace(holder string) (oldest string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	count := 0
	for id, known := range v.byID {
		switch {
		case v.sessionOf(id) == nil:
			known.deaf()
			known.timer.Stop()
			delete(v.byID, id)
			continue
		case known.holder != holder:
			continue
		}
		count++
		if known.busy == 0 && (oldest == "" || known.idle.Before(v.byID[oldest].idle)) {
			oldest = id
		}
	}
	switch {
	case count < v.most:
		return "", nil
	case oldest == "":
		return "", fault.New(fault.Unavailable, "this client has %d sessions, all in use, and no more at a time",
			count).
			WithHint("end sessions with DELETE, ask without a session (protocol revision %s), or have "+
				"mcp_sessions raised", Stateless)
	}
	v.byID[oldest].deaf()
	v.byID[oldest].timer.Stop()
	delete(v.byID, oldest)
	return oldest, nil
}
