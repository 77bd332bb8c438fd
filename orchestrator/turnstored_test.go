package orchestrator

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// countingScript says how many messages the process was told, and the session.
const countingScript = `
heard=0
while read -r line; do
	heard=$((heard+1)); echo x >> "$HOME/told"
	printf '{"type":"assistant","message":{"content":[{"type":"text","text":"heard %d, told %d"}]}}\n' $heard $(wc -l < "$HOME/told")
	printf '{"type":"result","subtype":"success"}\n'
done
`

// turnJournal notes what is stored, in what state a run is. It may refuse to store the end of a turn.
type turnJournal struct {
	refuses bool
	refused chan struct{} // closed when it did

	mu     sync.Mutex
	stored []string
}

var errRefused = errors.New("refused")

func (j *turnJournal) note(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stored = append(j.stored, what)
}

func (j *turnJournal) standBefore(other *journal) {
	other.Runs, other.Sessions = turnRuns{other.Runs, j}, turnSessions{other.Sessions, j}
}

// turnRuns notes what is stored of runs.
type turnRuns struct {
	runStore
	journal *turnJournal
}

func (r turnRuns) Insert(ctx context.Context, row store.Run, key store.Key, events ...store.Event) error {
	r.journal.note("insert " + row.State)
	return r.runStore.Insert(ctx, row, key, events...)
}

func (r turnRuns) Save(ctx context.Context, row store.Run, events ...store.Event) error {
	r.journal.note("run " + row.State)
	return r.runStore.Save(ctx, row, events...)
}

// turnSessions notes what is stored of sessions.
type turnSessions struct {
	turns.Rows
	journal *turnJournal
}

func (s turnSessions) Save(ctx context.Context, row store.Session, run string, events ...store.Event) error {
	s.journal.note("session")
	return s.Rows.Save(ctx, row, run, events...)
}

func (s turnSessions) SaveTurn(ctx context.Context, row store.Session, r store.Run, events ...store.Event) error {
	j := s.journal
	j.note("turn " + r.State)
	if j.refuses && r.State == string(api.Completed) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if !isClosed(j.refused) {
			close(j.refused)
		}
		return errRefused
	}
	return s.Rows.SaveTurn(ctx, row, r, events...)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// counting is a session with an agent that counts its messages, and lives on.
func (l *leaky) counting() (session string) {
	l.Helper()
	write(l.T, filepath.Join(l.opts.Sources[0], "counts", "agent.yaml"), "name: counts\nkind: agent\nimage: "+dockertest.Image+
		"\nagent: {command: "+shell(countingScript)+", mode: interactive, protocol: stream-json}\nsession: {keep_alive: true}\n")
	if err := l.service.Close(); err != nil {
		l.Fatal(err)
	}
	l.start(dockertest.Require(l.T))
	made, err := l.service.Sessions.Create(trusted.Context(l), "counts", nil)
	if err != nil {
		l.Fatal(err)
	}
	return made.ID
}

// closes ends a session with what lives of it.
func (l *leaky) closes(session string) {
	l.Helper()
	if _, err := l.service.Sessions.Close(trusted.Context(l), session, "the test is over"); err != nil {
		l.Error(err)
	}
	within(l.T, func() bool { return l.service.sessions.Find(session) == nil }, func() string { return "the session stays" })
}

func (l *leaky) turn(session string) (id string) {
	l.Helper()
	record, _, err := l.service.Submit(trusted.Context(l), spool.Submission{Session: session, Input: encoded(message("x"))})
	if err != nil {
		l.Fatal(err)
	}
	return record.ID
}

func (l *leaky) over(id, want string) {
	l.Helper()
	record := l.until(id, func(r api.Record) bool { return r.Outcome != "" && l.service.jobs.count() == 0 })
	if string(record.Output) != `{"text":"`+want+`"}` {
		l.Errorf("%s, want %q: %+v", record.Output, want, record.Error)
	}
}

// What a turn of a living session stores before its program is told, and before its answer is.
func TestATurnOfALivingSessionIsStoredInThreeWrites(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	session := l.counting()
	defer l.closes(session)
	l.over(l.turn(session), "heard 1, told 1")
	journal := &turnJournal{}
	journal.standBefore(&l.service.journal)
	id := l.turn(session)
	l.over(id, "heard 2, told 2")
	want := []string{"insert idle", "turn running", "turn completed", "run completed", "run completed"} // the last two clean up
	// What the program tells may be stored by itself, where it takes its time.
	if got := slices.DeleteFunc(journal.stored, func(s string) bool { return s == "session" }); !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	var states []string
	events, err := l.service.store.Events.List(trusted.Context(t), id, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if data, _ := records.EventOf(event).Decode(); data != nil {
			if entered, ok := data.(api.Transition); ok {
				states = append(states, string(entered.State))
			}
		}
	}
	if got := strings.Join(states, " "); got != "idle starting running completed cleanup idle" {
		t.Errorf("it tells of %s", got)
	}
}

// A process that dies before the end of a turn is stored leaves nothing of that: the next one
// takes it once more, and the program isn't told again.
func TestATurnWhoseEndWasNotStoredEndsOnce(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	session := l.counting()
	defer l.closes(session)
	l.over(l.turn(session), "heard 1, told 1")
	journal := &turnJournal{refuses: true, refused: make(chan struct{})}
	journal.standBefore(&l.service.journal)
	id := l.turn(session)
	<-journal.refused
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.start(dockertest.Require(t))
	l.over(id, "heard 2, told 2")
	shown := l.shown(id)
	if n := strings.Count(shown, `"text":"2, told 2"`); n != 1 {
		t.Errorf("its text is told %d times: %s", n, shown)
	}
	l.over(l.turn(session), "heard 3, told 3")
}
