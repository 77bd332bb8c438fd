package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/api"
)

const (
	startTime = 30 * time.Second
	pollTime  = 5 * time.Millisecond
)

// server is an `aod serve` of our own, asked over connections that stay open.
type server struct {
	cmd    *exec.Cmd
	client *http.Client
	url    string
	token  string
}

// serving is what a server is started with.
type serving struct {
	data string         // its data directory; "" is a new one
	pool int            // how many containers may wait, all together
	warm map[string]int // by unit, how many wait

	needs map[string]string // by unit, the label of the machine that it needs

	noSync bool   // its syncs do nothing, see startWithoutSyncs
	engine string // a DOCKER_HOST; "" is the usual one
	more   string // further lines of its file
}

// serve starts a server, which is stopped after the row, and returns when it is ready.
func (b *bench) serve(ctx context.Context, with serving) (*server, error) {
	data, err := b.dataOf(with)
	if err != nil {
		return nil, err
	}
	words, err := os.CreateTemp(b.dir, "serve-*.log")
	if err != nil {
		return nil, err
	}
	defer words.Close()
	cmd := exec.CommandContext(ctx, b.aod, "--data", data, "--units", b.units(), "serve", "--listen", "127.0.0.1:0",
		"--log-level", "warn",
		"--pool", strconv.Itoa(with.pool), "--pool-memory", "4GiB", "--config", filepath.Join(data, "aod.yaml"))
	cmd.Stderr = words
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if with.engine != "" {
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+with.engine)
	}
	start := cmd.Start
	if with.noSync {
		start = func() error { return startWithoutSyncs(cmd) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := s.find(ctx, filepath.Join(data, "server", "address")); err != nil {
		text, _ := os.ReadFile(words.Name())
		return nil, errors.Join(fmt.Errorf("%w: %s", err, text), s.stop())
	}
	b.close = append(b.close, s.stop)
	return s, nil
}

// dataOf is the data directory with the server's settings in it, and no address any more.
func (b *bench) dataOf(with serving) (data string, err error) {
	if data = with.data; data == "" {
		if data, err = os.MkdirTemp(b.dir, "data-"); err != nil {
			return "", err
		}
	}
	var settings strings.Builder
	settings.WriteString("unit:\n")
	for name, n := range with.warm {
		fmt.Fprintf(&settings, "  %s: {warm: %d}\n", name, n)
	}
	for name, label := range with.needs {
		fmt.Fprintf(&settings, "  %s: {needs: [%s]}\n", name, label)
	}
	if len(with.warm)+len(with.needs) == 0 {
		settings.WriteString("  {}\n")
	}
	settings.WriteString(with.more)
	if err := write(filepath.Join(data, "aod.yaml"), settings.String()); err != nil {
		return "", err
	}
	err = os.Remove(filepath.Join(data, "server", "address"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return data, err
}

// find waits until the server says where it is, and then until it is ready.
func (s *server) find(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		raw, err := os.ReadFile(address)
		if err != nil {
			return false, nil //nolint:nilerr // it isn't there yet
		}
		token, err := os.ReadFile(filepath.Join(filepath.Dir(address), "token"))
		s.url, s.token = strings.TrimSpace(string(raw)), strings.TrimSpace(string(token))
		if err != nil {
			return false, err
		}
		_, err = s.ask(ctx, http.MethodGet, "/readyz", "", http.StatusOK)
		return err == nil, nil
	})
}

// poll asks until the answer is yes, an error, or ctx's end.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends the server, which has nothing to do any more.
func (s *server) stop() error {
	s.client.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// ask makes a request and wants a status.
func (s *server) ask(ctx context.Context, method, path, body string, want int) ([]byte, error) {
	_, answer, err := s.send(ctx, method, path, body, want)
	return answer, err
}

func (s *server) send(ctx context.Context, method, path, body string, want int) (http.Header, []byte, error) {
	return s.sendAs(ctx, method, path, "application/json", body, want)
}

func (s *server) sendAs(
	ctx context.Context, method, path, contentType, body string, want int,
) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body) // to its end, so that the connection can be used again
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return response.Header, answer, err
}

// submission is the way of one submission of the small job, whose run has come to rest before anything
// else is timed.
func (s *server) submission(name, query string, want int) *way {
	return submission(name, s.after, func(ctx context.Context) (api.Record, error) {
		return s.submit(ctx, smallRun, query, want)
	})
}

func submission(
	name string, after func(context.Context, ...string) error, submit func(context.Context) (api.Record, error),
) *way {
	var last string
	return &way{
		name: name,
		do: func(ctx context.Context) error {
			record, err := submit(ctx)
			last = record.ID
			return err
		},
		settle: func(ctx context.Context) error { return after(ctx, last) },
	}
}

// after waits until nothing more happens to runs, which have to be successes.
func (s *server) after(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if _, err := s.rest(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// submit asks for a run.
func (s *server) submit(ctx context.Context, body, query string, want int) (api.Record, error) {
	var record api.Record
	answer, err := s.ask(ctx, http.MethodPost, "/v1/runs"+query, body, want)
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(answer, &record)
}

// rest returns a run's record when nothing more happens to it. The run has to be a success.
func (s *server) rest(ctx context.Context, id string) (record api.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		answer, err := s.ask(ctx, http.MethodGet, "/v1/runs/"+id, "", http.StatusOK)
		if err != nil {
			return false, err
		}
		record = api.Record{}
		err = json.Unmarshal(answer, &record)
		return isAtRest(record), err
	})
	if err == nil && record.Outcome != api.Success {
		err = fmt.Errorf("run %s ended with the outcome %q: %s", record.ID, record.Outcome, record.Error.Message)
	}
	return record, err
}

// isAtRest reports whether a run has ended and is cleaned up: its container's removal takes the
// engine as long as a warm run does, and would be timed with the next thing.
func isAtRest(record api.Record) bool {
	last := len(record.Transitions) - 1
	return record.FinishedAt != nil && last >= 0 && record.Transitions[last].State == api.Idle
}
