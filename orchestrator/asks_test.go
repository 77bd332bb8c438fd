package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"database/sql" //nolint:depguard // the test makes the database fail, by a trigger

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// postQuestion has the program of a run ask people by the capsule API.
func postQuestion(ctx context.Context, a *actor) *httptest.ResponseRecorder {
	api := capsuleapi.NewHandler(a.Caller(time.Time{}), a.Calls(), handoff.Limits{}, nil)
	answer, question := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/ask", strings.NewReader(`{"text": "Well?"}`))
	question.Header.Set("Content-Type", "application/json")
	api.ServeHTTP(answer, question)
	return answer
}

// logged has the Service log to a text.
func logged(log *testkit.Log) func(*Options) {
	return func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) }
}

// failing has the database refuse what a trigger says, as a full disk does, until heal is called.
func (p *plays) failing(on string) (heal func()) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.opts.Home, layout.Database))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close() })
	do := func(statement string) {
		p.t.Helper()
		if _, err := db.ExecContext(trusted.Context(p.t), "PRAGMA busy_timeout = 10000; "+statement); err != nil {
			p.t.Fatal(err)
		}
	}
	do("CREATE TRIGGER no_room BEFORE " + on + " BEGIN SELECT RAISE(ABORT, 'no room'); END")
	return func() { do("DROP TRIGGER no_room") }
}

func TestAProgramThatAsksTooOftenIsToldSo(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	began, gate, answers := make(chan string, 1), make(chan struct{}), make(chan *httptest.ResponseRecorder, 1)
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		began <- a.ID
		<-gate
		answers <- postQuestion(ctx, a)
		return nil
	}, gate), logged(&log))
	id := p.submit()
	<-began
	var asked sync.WaitGroup
	for n := range 500 {
		asked.Go(func() {
			q := store.Question{ID: fmt.Sprint("q", n), Run: id, Address: fmt.Sprint(n), Kind: "input", Text: "?", Answers: []byte("[]"), AskedAt: time.Now()}
			if _, err := p.service.store.Questions.Open(trusted.Context(t), q); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	close(gate)
	if ended := p.await(id); ended.Outcome != api.Success {
		t.Error(show(ended))
	}
	if answer := <-answers; answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body.String(), "ask for several things at once") {
		t.Errorf("the 501st question: %d %s", answer.Code, answer.Body)
	}
	if text := log.String(); strings.Contains(text, "will try again") {
		t.Error(text)
	}
}

func TestAQuestionThatCannotBeStoredEndsWithItsRun(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		postQuestion(ctx, a)
		return nil
	}, nil), logged(&log))
	p.failing("INSERT ON questions")
	id := p.submit()
	within(t, func() bool { return strings.Contains(log.String(), `operation="open question"`) }, log.String)
	if _, err := p.service.Cancel(trusted.Context(t), id, ""); err != nil {
		t.Fatal(err)
	}
	if ended := p.await(id); ended.State != api.Cancelled {
		t.Error(show(ended))
	}
}

func TestWhatMustBeStoredIsTriedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	p := newPlays(t, &stage{}, logged(&log))
	heal := p.failing("INSERT ON outputs")
	id := p.submit()
	within(t, func() bool { return strings.Contains(log.String(), `operation="save run"`) }, log.String)
	heal()
	if ended := p.await(id); ended.Outcome != api.Success {
		t.Error(show(ended))
	}
}
