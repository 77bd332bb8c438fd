package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// asksMCP asks the server's /mcp as a client of revision 2026-07-28 that knows tasks. What it
// is told beside the answer is dropped.
func (s *server) asksMCP(method, name, params string) (json.RawMessage, error) {
	const revision = "2026-07-28"
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, revision)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, params, meta)
	request, err := http.NewRequest(http.MethodPost, s.url()+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": revision, "Mcp-Method": method,
	} {
		request.Header.Set(header, value)
	}
	if name != "" {
		request.Header.Set("Mcp-Name", name)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return answerOf(raw)
}

// answerOf is the result in an answer: JSON, or a stream of events.
func answerOf(raw []byte) (json.RawMessage, error) {
	for line := range bytes.Lines(raw) {
		var m struct {
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch {
		case json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &m) != nil:
		case m.Error != nil:
			return nil, errors.New(m.Error.Message)
		case m.Result != nil:
			return m.Result, nil
		}
	}
	return nil, fmt.Errorf("there is no result in %.300q", raw)
}

// longCall is a call that becomes a task, and what the task should come to.
type longCall struct {
	kind   string
	work   work
	cancel bool
	status string
	says   string // in its result

	id string
}

// calledTask is a task as a client is told of it.
type calledTask struct {
	ResultType, TaskID, Status string
	Result                     json.RawMessage
}

func (s *server) task(method, id string) (t calledTask, err error) {
	raw, err := s.asksMCP(method, "", fmt.Sprintf(`"taskId":%q`, id))
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(raw, &t)
}

// begin makes the call, which is answered with a task. On a busy machine the run may be over before
// that: then it tries with another call.
func (c *longCall) begin(s *server) error {
	var raw json.RawMessage
	for range 5 {
		began := time.Now()
		var err error
		raw, err = s.asksMCP("tools/call", "survivor", fmt.Sprintf(`"name":"survivor","arguments":%s`, c.work.input()))
		if err != nil {
			return err
		}
		var t calledTask
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("it is answered with %s", raw)
		}
		if t.ResultType == "task" && t.TaskID != "" {
			s.t.Logf("%s: a task after %v", c.kind, time.Since(began).Round(time.Millisecond))
			c.id = t.TaskID
			return nil
		}
	}
	return fmt.Errorf("it is answered with %s", raw)
}

const (
	untilTask    = 60 // ticks: longer than a call may take until it is a task
	ticksOfAKill = 15
)

// It is run by: AOD_KILLS=20 go test -race -run TestATaskSurvivesKills ./cmd/aod
func TestATaskSurvivesKills(t *testing.T) {
	t.Parallel()
	onlyLong(t, "AOD_KILLS")
	seed := number(t, "AOD_SEED", int(time.Now().UnixNano()%1e9))
	kills := number(t, "AOD_KILLS", 0)
	t.Logf("to be repeated with AOD_SEED=%d AOD_KILLS=%d", seed, kills)
	dice := rand.New(rand.NewPCG(uint64(seed), 0))
	s := newServer(t, "--concurrency", "4")
	s.addWorker("survivor", unique())
	s.start()
	s.removeLater(s.await(s.mustSubmit("survivor", work{})).Image.Ref)
	ticks := untilTask + ticksOfAKill*kills
	calls := []*longCall{
		{kind: "good", work: work{Mark: 7, Ticks: ticks}, status: "completed", says: `"structuredContent":{"mark":7}`},
		{kind: "short", work: work{Mark: 8, Ticks: untilTask + dice.IntN(ticks-untilTask)}, status: "completed", says: `"structuredContent":{"mark":8}`},
		{kind: "failing", work: work{Ticks: ticks, Exit: 3}, status: "completed", says: `"isError":true`},
		{kind: "cancelled", work: work{Ticks: 10 * ticks}, cancel: true, status: "cancelled"},
	}
	beginAll(s, calls)
	met := 0 // tasks that went on at a kill, of all kills
	for round := range kills {
		time.Sleep(time.Duration(dice.Int64N(int64(1200 * time.Millisecond))))
		for _, c := range calls {
			if c.cancel && round == kills/2 {
				s.awaitLine(c.id, "started") // else there is nothing to cancel but a queue
				s.cancelTask(c.id)
			}
			if !s.isOver(c.id) {
				met++
			}
		}
		s.kill()
		s.start()
	}
	for _, c := range calls {
		s.judgeTask(c)
	}
	s.kill()
	s.start()
	for _, c := range calls { // as long as the run is kept
		s.judgeTask(c)
	}
	t.Logf("%d kills met %d tasks that went on", kills, met)
}

func beginAll(s *server, calls []*longCall) {
	s.t.Helper()
	begun := make(chan error)
	for _, c := range calls {
		go func() { begun <- c.begin(s) }()
	}
	var errs []error
	for range calls {
		errs = append(errs, <-begun)
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

// cancelTask cancels a task, and waits until nothing of it runs.
func (s *server) cancelTask(id string) {
	s.t.Helper()
	began := time.Now()
	if _, err := s.task("tasks/cancel", id); err != nil {
		s.t.Error(err)
	}
	testkit.Eventually(s.t, "the containers of a cancelled task are gone", func() bool { return !s.hasContainer(id) })
	s.t.Logf("cancelled: its container is gone after %v", time.Since(began).Round(time.Millisecond))
}

func (s *server) hasContainer(run string) bool {
	for _, ref := range s.containers() {
		if ref.Labels[runtime.LabelRun] == run {
			return true
		}
	}
	return false
}

// judgeTask waits for a task's end. Its program must have been started once.
func (s *server) judgeTask(c *longCall) {
	s.t.Helper()
	var got calledTask
	testkit.Eventually(s.t, c.kind+" is over", func() bool {
		var err error
		got, err = s.task("tasks/get", c.id)
		return err == nil && got.Status != "working"
	})
	if got.Status != c.status || !bytes.Contains(got.Result, []byte(c.says)) || got.TaskID != c.id {
		s.t.Errorf("%s: %s, %s", c.kind, got.Status, got.Result)
	}
	record := s.await(c.id)
	starts, err := s.startsOf(c.id)
	if err != nil || starts != 1 || record.Retries != 0 {
		s.t.Errorf("%s: started %d times, tried again %d times, %v", c.kind, starts, record.Retries, err)
	}
	if c.status == "cancelled" && record.Outcome != api.WasCancelled {
		s.t.Errorf("%s: %s", c.kind, record.Outcome)
	}
}
