package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// hookHost is a name of this machine that pushes may go to.
const hookHost = "hook.example"

// hook is a receiver of pushes.
type hook struct {
	server *httptest.Server

	mu    sync.Mutex
	late  map[string][]time.Duration // by task
	ended map[string]bool
}

func newHook() *hook {
	h := &hook{late: map[string][]time.Duration{}, ended: map[string]bool{}}
	h.server = httptest.NewServer(h)
	return h
}

func (h *hook) url() string {
	_, port, _ := net.SplitHostPort(h.server.Listener.Addr().String())
	return "http://" + net.JoinHostPort(hookHost, port) + "/in"
}

// ServeHTTP implements http.Handler.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var told struct {
		Task         *task
		StatusUpdate *struct {
			TaskID string
			Status taskStatus
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case told.Task != nil:
		h.ended[told.Task.ID] = true
		h.late[told.Task.ID] = append(h.late[told.Task.ID], at.Sub(told.Task.Status.Timestamp))
	case told.StatusUpdate != nil:
		h.late[told.StatusUpdate.TaskID] = append(h.late[told.StatusUpdate.TaskID],
			at.Sub(told.StatusUpdate.Status.Timestamp))
	}
}

// heard returns how late the pushes of a task came, when its end was pushed.
func (h *hook) heard(ctx context.Context, id string) (late []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		late = h.late[id]
		return h.ended[id], nil
	})
	return late, err
}
