package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
)

const (
	a2aSend   = "`SendMessage`, warm"
	a2aAtOnce = "`SendMessage`, each of ten at once"
	apiAtOnce = "API, each of ten at once"
	a2aFirst  = "from the acceptance to a stream's first event"
	a2aPushed = "from an event to its push"
	tasksAt   = "/a2a/" + smallUnit
)

// tasks is the small job as a task of the Agent2Agent protocol, beside the same run by the
// server's own API.
func (b *bench) tasks(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	g := group{
		ways: []*way{
			warm.submission(apiWarm, smallRun),
			submission(a2aSend, warm.after,
				func(ctx context.Context) (api.Record, error) { return warm.sendTask(ctx) }),
		},
		beside: []string{apiWarm}, times: 7, notes: []func() string{warm.String},
		aims: []aim{{of: a2aSend, beside: apiWarm, ratio: 1.25}},
	}
	return g.measure(ctx, b.pairs)
}

// taskMessage is what begins a task of the small job, with more of its parameters.
func taskMessage(more string) string {
	return fmt.Sprintf(`{"message": {"messageId": %q, "role": "ROLE_USER", "parts": [{"data": {"n": 3}}]}%s}`,
		uuid.NewString(), more)
}

// sendTask has a task come to its end.
func (s *server) sendTask(ctx context.Context) (record api.Record, err error) {
	answer, err := s.ask(ctx, http.MethodPost, tasksAt,
		`{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": `+taskMessage("")+`}`, http.StatusOK)
	if err != nil {
		return record, err
	}
	var told struct {
		Result struct{ Task task }
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return record, err
	}
	record.ID = told.Result.Task.ID
	if told.Result.Task.Status.State != taskCompleted {
		err = fmt.Errorf("the task is answered %s", answer)
	}
	return record, err
}

const taskCompleted = "TASK_STATE_COMPLETED"

// task is what is read of one.
type task struct {
	ID     string
	Status taskStatus
}

type taskStatus struct {
	State     string
	Timestamp time.Time
}

// atOnce are so many calls at once, for each of which a container waits.
const atOnce = 10

// tenTasks are ten tasks at once, beside ten runs.
func (b *bench) tenTasks(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, atOnce, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	ways := []func(context.Context) (api.Record, error){
		func(ctx context.Context) (api.Record, error) {
			return warm.submit(ctx, smallRun, waiting, http.StatusOK)
		},
		warm.sendTask,
	}
	each := []series{{name: apiAtOnce}, {name: a2aAtOnce}}
	turns := max(b.pairs/2, 2)
	for turn := range turns + 1 {
		for i := range ways {
			at := (turn + i) % len(ways)
			took, err := warm.tenTimes(ctx, ways[at])
			if err != nil {
				return part{}, err
			}
			if turn > 0 {
				each[at].times = append(each[at].times, took.times...)
			}
		}
	}
	made := group{beside: []string{apiAtOnce}, notes: []func() string{warm.String}}.part(each, turns)
	made.goals = []goal{
		atMost(a2aAtOnce+", p50 in ms", each[1].p50().Seconds()*1000, 50),
		atMost(a2aAtOnce+", p99 in ms", each[1].quantile(0.99).Seconds()*1000, 250),
	}
	return made, nil
}

// tenTimes does something ten times at once, and returns when the pool is full again.
func (k *stock) tenTimes(ctx context.Context, do func(context.Context) (api.Record, error)) (each series, err error) {
	var mu sync.Mutex
	var ids []string
	each, _, failures := crowd(ctx, atOnce, atOnce, func(ctx context.Context, _ int) error {
		record, err := do(ctx)
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, record.ID)
		return err
	})
	if len(failures) > 0 {
		return each, errors.Join(failures...)
	}
	return each, k.after(ctx, ids...)
}

// toldTasks tells how soon a client hears of a task: by its stream, and by pushes.
func (b *bench) toldTasks(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	hook := newHook()
	b.close = append(b.close, func() error { hook.server.Close(); return nil })
	warm, err := b.stockOf(ctx, serving{more: "a2a: {push_private: [" + hookHost + "=127.0.0.1]}\n"}, 2, smallRun,
		smallUnit)
	if err != nil {
		return part{}, err
	}
	each := []series{{name: a2aFirst}, {name: a2aPushed}}
	turns := b.pairs * 7
	for turn := range turns + 1 {
		first, pushed, err := warm.hear(ctx, hook)
		if err != nil {
			return part{}, err
		}
		if turn > 0 {
			each[0].times = append(each[0].times, first)
			each[1].times = append(each[1].times, pushed...)
		}
	}
	made := group{
		aims:  []aim{{of: a2aFirst, ms: 20}, {of: a2aPushed, ms: 100}},
		notes: []func() string{warm.String},
	}.part(each, turns)
	made.notes = append(made.notes, "Events have times in whole milliseconds.")
	return made, nil
}

// hear streams a task whose changes are pushed as well, and returns how late its first event and
// each of its pushes came.
func (k *stock) hear(ctx context.Context, hook *hook) (first time.Duration, pushed []time.Duration, err error) {
	body := taskMessage(fmt.Sprintf(`, "configuration": {"taskPushNotificationConfig": {"url": %q}}`, hook.url()))
	id, at, err := k.firstEvent(ctx, body)
	if err != nil {
		return 0, nil, err
	}
	record, err := k.rest(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	if pushed, err = hook.heard(ctx, id); err != nil {
		return 0, nil, err
	}
	return at.Sub(record.CreatedAt), pushed, k.after(ctx, id)
}

// firstEvent reads a stream to its end, and returns its task and when the first event was read.
func (s *server) firstEvent(ctx context.Context, body string) (id string, at time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+tasksAt+"/message:stream",
		strings.NewReader(body))
	if err != nil {
		return "", at, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return "", at, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData || id != "" {
			continue
		}
		at = time.Now()
		var told struct{ Task task }
		if err := json.Unmarshal(data, &told); err != nil {
			return "", at, err
		}
		id = told.Task.ID
	}
	if err = lines.Err(); err == nil && id == "" {
		err = fmt.Errorf("a stream without a task: %s", response.Status)
	}
	return id, at, err
}
