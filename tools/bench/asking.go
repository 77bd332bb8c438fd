package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

const (
	modelUnit = "bench-model"
	atDouble  = "the double itself"
	atSocket  = "through the gateway, at its socket"
	inSandbox = "through the gateway, from a sandbox (Python)"
	onHost    = "the double itself, from this machine (Python)"
	heldUnit  = `{"unit": "bench-model", "input": {"n": 0}}`
)

// modelLogic asks a model n times and tells how long each took; with 0 it only stays.
const modelLogic = `import http.client
import json
import sys
import time

QUESTION = {"role": "user", "content": "What is the colour of the sky?"}
BODY = json.dumps({"model": "plain", "messages": [QUESTION]}, separators=(",", ":"))  # the double looks for its model


def times(host: str, port: int, n: int, body: str = BODY) -> list:
    line = http.client.HTTPConnection(host, port)
    taken = []
    for _ in range(n):
        began = time.perf_counter()
        line.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        answer = line.getresponse()
        answer.read()
        taken.append((time.perf_counter() - began) * 1000)
        if answer.status != 200:
            raise RuntimeError(answer.status)
    return taken


def execute(payload: dict) -> dict:
    if payload["n"] == 0:
        time.sleep(3600)
    body = BODY.replace("plain", payload.get("model", "plain"))
    return {"times": times("127.0.0.1", 7070, payload["n"], body)}


if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    print(json.dumps({"times": times(host, int(port), int(sys.argv[2]))}))
`

// modelJob is a unit that asks the double.
func (b *bench) modelJob(ctx context.Context) (job, error) {
	j, err := b.newJob(ctx, program{
		name: "model", input: `{"n": 1}`, logic: modelLogic,
		agent: "model: plain\nmodels: [" + strings.Join(doubleModels[1:], ", ") + "]\n",
		schema: `{"input": {"type": "object", "properties": {"n": {"type": "int"}, "model": {"type": "string"}}},
 "output": {"type": "object", "properties": {"times": {"type": "list"}}}}`,
	})
	return j, err
}

// modelRig is a double, a server that asks it, and clients of both.
type modelRig struct {
	*double
	server  *server
	direct  modelClient
	sockets []modelClient // of the runs that stay
	job     job
}

// socket is the client of one of the runs, in turn.
func (a modelRig) socket(n int) modelClient { return a.sockets[n%len(a.sockets)] }

// itself is the client of the double.
func (a modelRig) itself(int) modelClient { return a.direct }

// modelRig starts runs that stay, and finds their sockets.
func (b *bench) modelRig(ctx context.Context) (a modelRig, err error) {
	if a.double, err = b.double(ctx); err != nil {
		return a, err
	}
	if a.job, err = b.modelJob(ctx); err != nil {
		return a, err
	}
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return a, err
	}
	if a.server, err = b.serve(ctx, serving{data: data, more: "concurrency: 16\n" + a.settings()}); err != nil {
		return a, err
	}
	a.direct = modelClient{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}, a.url}
	for range heldRuns {
		path, err := b.heldRun(ctx, a.server, data)
		if err != nil {
			return a, err
		}
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DialContext: dial}}
		a.sockets = append(a.sockets, modelClient{client, "http://aod/v1"})
	}
	return a, nil
}

// heldRuns are as many as the requests come from: each run makes at most 200 a second.
const heldRuns = 5

// heldRun starts a run that stays until the row's end, and returns a path of its socket.
func (b *bench) heldRun(ctx context.Context, s *server, data string) (path string, err error) {
	record, err := s.submit(ctx, heldUnit, "", http.StatusAccepted)
	if err != nil {
		return "", err
	}
	b.close = append(b.close, func() error { return s.cancel(context.WithoutCancel(ctx), record.ID) })
	dir, err := socketOf(ctx, filepath.Join(data, "server", "runs", record.ID))
	if err != nil {
		return "", err
	}
	b.close = append(b.close, dir.Close)
	return fmt.Sprintf("/proc/self/fd/%d/aod.sock", dir.Fd()), nil // the path itself may be too long
}

// cancel ends a run, and waits for its end.
func (s *server) cancel(ctx context.Context, id string) error {
	if _, err := s.ask(ctx, http.MethodPost, "/v1/runs/"+id+"/cancel", "", http.StatusAccepted); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		answer, err := s.ask(ctx, http.MethodGet, "/v1/runs/"+id, "", http.StatusOK)
		var record api.Record
		return err == nil && json.Unmarshal(answer, &record) == nil && record.FinishedAt != nil, err
	})
}

// socketOf waits for the socket of a run, and opens its directory.
func socketOf(ctx context.Context, dir string) (found *os.File, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil && filepath.Base(path) == "aod.sock" && found == nil {
				found, err = os.Open(filepath.Dir(path)) //nolint:gosec // the directory is ours
			}
			return err
		}) // it isn't all there yet
		return found != nil, nil
	})
	return found, err
}

// asksEach is how often a program asks in one turn.
const asksEach = 200

// askModel holds the gateway against the double alone, for a client in Go and one in Python.
func (b *bench) askModel(ctx context.Context) (part, error) {
	a, err := b.modelRig(ctx)
	if err != nil {
		return part{}, err
	}
	each := []series{{name: atDouble}, {name: atSocket}, {name: onHost}, {name: inSandbox}}
	for turn := range max(b.pairs/6, 2) {
		for range asksEach {
			for i, c := range []modelClient{a.direct, a.sockets[turn%heldRuns]} {
				began := time.Now()
				if err := c.whole(ctx, "plain", "What is the colour of the sky?"); err != nil {
					return part{}, err
				}
				each[i].add(turn, time.Since(began))
			}
		}
		for i, taken := range []func(context.Context) ([]byte, error){a.fromHost, a.fromSandbox} {
			output, err := taken(ctx)
			if err != nil {
				return part{}, err
			}
			var told struct{ Times []float64 }
			if err := json.Unmarshal(output, &told); err != nil {
				return part{}, err
			}
			for _, ms := range told.Times[1:] { // the first one connects
				each[2+i].add(turn, inMilliseconds(ms))
			}
		}
	}
	made := group{beside: []string{atDouble}}.part(each, len(each[0].times))
	added := func(q float64) float64 { return (each[3].quantile(q) - each[2].quantile(q)).Seconds() * 1000 }
	made.goals = []goal{
		atMost("added to each from a sandbox, p50 in ms", added(0.5), 1.5),
		atMost("added to each from a sandbox, p99 in ms", added(0.99), 5),
	}
	return made, nil
}

// add counts a time, but for the first turn.
func (s *series) add(turn int, took time.Duration) {
	if turn > 0 {
		s.times = append(s.times, took)
	}
}

func (a modelRig) fromHost(ctx context.Context) ([]byte, error) {
	address := strings.TrimSuffix(strings.TrimPrefix(a.url, "http://"), "/v1")
	return exec.CommandContext(ctx, "python3", filepath.Join(a.job.capsule, "src", "main.py"), address,
		fmt.Sprint(asksEach)).Output()
}

func (a modelRig) fromSandbox(ctx context.Context) ([]byte, error) {
	record, err := a.server.submit(ctx, fmt.Sprintf(`{"unit": "bench-model", "input": {"n": %d}}`, asksEach), waiting,
		http.StatusOK)
	if err == nil && record.Outcome != api.Success {
		err = errors.New(record.Error.Message)
	}
	return record.Output, err
}
