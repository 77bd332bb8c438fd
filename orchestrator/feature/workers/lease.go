package workers

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// terms are what is stored of a lease.
type terms struct {
	ID      string `json:"id"`
	Worker  string `json:"worker"`
	Nonce   string `json:"nonce"`
	Attempt int    `json:"attempt"`
}

// lease is a worker's right to carry out an attempt, with what it has told of it.
type lease struct {
	terms
	run   *run.Run
	news  chan struct{} // has one when something was told
	relay *relay

	led     chan struct{} // closed when it is known which lines of the log have come
	lead    func()
	entered chan struct{} // closed when it is stored that the program runs
	enter   func()
	settled chan struct{} // closed when the end that was told is stored
	settle  func()

	mu        sync.Mutex
	running   *wire.Progress
	ended     *wire.Ended
	waits     *api.Waiting
	gone      bool
	lent      bool  // it does without its slot for now
	loan      *loan // of its slot; nil: the run has it
	unknown   bool  // the worker doesn't hold it
	transfers map[string]*transfer
	secrets   map[string]secrets.Secret // of its program, by their names

	talk    *talk         // with an MCP server; nil: the run is none
	session *wire.Session // as the worker is told of it, before it leads; nil: it has none
	from    far           // what the turn begins with
	telling telling

	uploading sync.Mutex
	uploaded  int64    // bytes of its output files, in this process
	names     []string // of those files

	logging sync.Mutex
	lines   int64 // of the attempt's log that have come
	bytes   int64
}

func newLease(of terms, r *run.Run) *lease {
	l := &lease{terms: of, run: r, news: make(chan struct{}, 1), relay: newRelay(), transfers: map[string]*transfer{}}
	l.led, l.lead = moment()
	l.entered, l.enter = moment()
	l.settled, l.settle = moment()
	return l
}

// moment returns what is closed from a moment on, and what closes it, once.
func moment() (over chan struct{}, now func()) {
	over = make(chan struct{})
	return over, sync.OnceFunc(func() { close(over) })
}

// already returns what is closed.
func already() <-chan struct{} {
	over, now := moment()
	now()
	return over
}

// begins says how many lines of the log have come to earlier processes.
func (l *lease) begins(lines int64) {
	l.logging.Lock()
	l.lines = lines
	l.logging.Unlock()
	l.lead()
}

// tell has the goroutine that leads the run look at what was told.
func (l *lease) tell(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	l.wake()
}

func (l *lease) wake() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// told is what a worker has told so far.
type told struct {
	running *wire.Progress
	ended   *wire.Ended
	waits   *api.Waiting
	unknown bool
	lent    bool
}

func (l *lease) now() told {
	l.mu.Lock()
	defer l.mu.Unlock()
	return told{
		l.running, l.ended, l.waits, l.unknown, l.lent && l.running == nil && l.ended == nil,
	}
}

// lost notes that the worker doesn't hold the lease any more.
func (l *lease) lost() { l.tell(func() { l.unknown = true }) }

// isGone reports whether nothing of the run is left at the worker.
func (l *lease) isGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// report takes what a worker tells while the run goes on, and returns how much of it has come. That the program runs,
// and what it said, is stored then: the worker doesn't tell it again.
func (l *lease) report(ctx context.Context, r wire.Reported) (has wire.Received, err error) {
	if err := untilOver(ctx, l.led); err != nil {
		return has, err
	}
	for _, b := range r.Builds {
		l.run.Built(runtime.BuildEvent{
			Step: run.Bounded(b.Step, run.MaxType), Name: run.Bounded(b.Name, run.MaxMessage),
			State: runtime.StepState(b.State),
		})
	}
	for _, e := range r.Egress[:min(len(r.Egress), egress.MaxRows)] {
		e.Host, e.Refused = l.run.Masked(run.Bounded(e.Host, run.MaxType)), run.Bounded(e.Refused, run.MaxType)
		l.run.Tell(run.Event{Data: e})
	}
	has.Lines = l.log(r.Line, r.Lines)
	l.tell(func() {
		l.waits = r.Waits
		if l.running == nil {
			l.running = r.Running
		}
	})
	if r.Running != nil {
		if err := untilOver(ctx, l.entered); err != nil {
			return has, err
		}
	}
	l.telling.take(r.First, r.Told)
	l.wake()
	has.Told, err = l.telling.stored(ctx)
	return has, err
}

// untilOver waits for a moment. Its error is the reason why ctx ended before.
func untilOver(ctx context.Context, moment <-chan struct{}) error {
	select {
	case <-moment:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// log takes lines of the log, of which the first has a number. Those that have come before are passed over.
func (l *lease) log(number int64, lines []wire.Line) int64 {
	l.logging.Lock()
	defer l.logging.Unlock()
	for _, line := range lines {
		if number++; number <= l.lines {
			continue
		}
		l.lines = number
		if l.bytes += int64(len(line.Text)); l.bytes > 2*l.run.Limits.LogBytes || line.Stream != "stdout" &&
			line.Stream != "stderr" {
			continue // no worker of ours sends that
		}
		l.run.Log(runtime.LogLine{Time: line.Time, Stream: line.Stream, Text: line.Text, Cut: line.Cut})
	}
	return l.lines
}

// leases are those that are good.
type leases struct {
	mu  sync.Mutex
	all map[string]*lease
}

func newLeases() *leases { return &leases{all: map[string]*lease{}} }

func (s *leases) add(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[l.ID] = l
}

// drop has a lease be good no more.
func (s *leases) drop(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l.ID)
}

// of returns a worker's lease; nil: it has none of that id.
func (s *leases) of(worker, id string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[id]; l != nil && l.Worker == worker {
		return l
	}
	return nil
}

// accepted returns the lease that a worker got for a nonce; nil: none.
func (s *leases) accepted(worker, nonce string) *lease {
	for _, l := range s.held(worker) {
		if l.Nonce == nonce {
			return l
		}
	}
	return nil
}

// held returns the leases of a worker.
func (s *leases) held(worker string) (held []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.Worker == worker {
			held = append(held, l)
		}
	}
	return held
}

// machineOf returns the machine where a run goes on at a worker; nil: none is known.
func (s *leases) machineOf(id string) *string {
	if id == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if l.run.ID == id {
			return &l.Worker
		}
	}
	return nil
}

// wake has the runs of a worker looked at again.
func (s *leases) wake(worker string) {
	for _, l := range s.held(worker) {
		l.wake()
	}
}

// compare returns which of the leases that a worker says to hold are void, and which it should hold and doesn't.
func (s *leases) compare(worker string, held wire.Held) (void []string, missing []*lease) {
	has, accepting := map[string]bool{}, map[string]bool{}
	for _, id := range held.Leases {
		has[id] = true
		if s.of(worker, id) == nil {
			void = append(void, id)
		}
	}
	for _, nonce := range held.Nonces {
		accepting[nonce] = true
	}
	for _, l := range s.held(worker) {
		if !has[l.ID] && !accepting[l.Nonce] && l.now().ended == nil {
			missing = append(missing, l)
		}
	}
	return void, missing
}

// settle has a worker remove what it holds in vain, and the runs know that it should hold and doesn't.
func (s *leases) settle(w *worker, held wire.Held) {
	void, missing := s.compare(w.name, held)
	for _, id := range void {
		w.put("void/"+id, wire.Order{Void: id})
	}
	for _, l := range missing {
		l.lost()
	}
}

// look is how often a run looks whether its worker is still there.
const look = time.Second
