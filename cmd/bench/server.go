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
	"strings"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/orchestrator"
)

const (
	startTime = 30 * time.Second
	pollTime  = 5 * time.Millisecond

	// smallRun asks for the small job.
	smallRun = `{"unit": "bench-small", "input": {"n": 3}}`
)

// server is an `aod serve` of our own, asked over one connection that stays open.
type server struct {
	cmd    *exec.Cmd
	client *http.Client
	url    string
	token  string
}

// serve starts a server over a data directory and returns when it is ready.
func (b *bench) serve(ctx context.Context, data string) (*server, error) {
	address := filepath.Join(data, "server", "address")
	if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	said, err := os.CreateTemp(b.dir, "serve-*.log")
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := exec.CommandContext(ctx, b.aod, "--data", data, "--units", b.units(), "serve", "--listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, client: &http.Client{Transport: &http.Transport{}}}
	if err := s.find(ctx, address); err != nil {
		words, _ := os.ReadFile(said.Name())
		return nil, errors.Join(fmt.Errorf("%w: %s", err, words), s.stop())
	}
	return s, nil
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
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body) // to its end, so that the connection can be used again
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return answer, err
}

// submit asks for a run.
func (s *server) submit(ctx context.Context, body, query string, want int) (orchestrator.Record, error) {
	var record orchestrator.Record
	answer, err := s.ask(ctx, http.MethodPost, "/v1/runs"+query, body, want)
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(answer, &record)
}

// rest returns a run's record when nothing more happens to it. The run has to be a success.
func (s *server) rest(ctx context.Context, id string) (record orchestrator.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		answer, err := s.ask(ctx, http.MethodGet, "/v1/runs/"+id, "", http.StatusOK)
		if err != nil {
			return false, err
		}
		record = orchestrator.Record{}
		err = json.Unmarshal(answer, &record)
		return record.FinishedAt != nil, err
	})
	if err == nil && record.Outcome != orchestrator.Success {
		err = fmt.Errorf("run %s ended with the outcome %q: %s", record.ID, record.Outcome, record.Error.Message)
	}
	return record, err
}
