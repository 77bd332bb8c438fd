package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// double is a provider of models that do as their names say.
type double struct {
	url string

	mu      sync.Mutex
	arrived []time.Time // of requests
	open    int         // requests that are held
	spoke   time.Time   // when the latest answer's first words were written
	release chan struct{}
}

const (
	streamTicks = 200 // of one stream
	tickTime    = 5 * time.Millisecond
	slowAnswer  = 2 * time.Second
	plainAnswer = `{"id":"1","choices":[{"message":{"content":"Blue."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`
)

// double listens until the row's end.
func (b *bench) double(ctx context.Context) (*double, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &double{url: "http://" + listener.Addr().String() + "/v1", release: make(chan struct{})}
	server := &http.Server{Handler: d, ReadHeaderTimeout: startTime}
	go func() { _ = server.Serve(listener) }() // until it is closed
	b.close = append(b.close, func() error {
		d.letGo()
		return server.Close()
	})
	return d, nil
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // who asks is gone
	}
	d.mu.Lock()
	d.arrived = append(d.arrived, at)
	d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case bytes.Contains(body, []byte(`"model":"ticks"`)):
		ticks(w, streamTicks)
		return
	case bytes.Contains(body, []byte(`"model":"held"`)):
		d.held(r.Context(), w)
		return
	case bytes.Contains(body, []byte(`"model":"words"`)):
		d.words(r.Context(), w)
		return
	case bytes.Contains(body, []byte(`"model":"slow"`)):
		time.Sleep(slowAnswer)
	}
	_, _ = io.WriteString(w, plainAnswer) // who asks may be gone
}

// ticks is a stream whose chunks say when they were sent.
func ticks(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	conn := http.NewResponseController(w)
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * tickTime)))
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"@%d@\"}}]}\n\n", time.Now().UnixNano())
		if conn.Flush() != nil {
			return
		}
	}
	_, _ = io.WriteString(w,
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":200}}\n\ndata: [DONE]\n\n")
}

// held begins a stream, and ends it when it is let go.
func (d *double) held(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	say(w, "Bl")
	d.stay(ctx)
	end(w)
}

// words says a sentence when it is let go, and ends when it is let go again.
func (d *double) words(ctx context.Context, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	d.stay(ctx)
	d.mu.Lock()
	d.spoke = time.Now()
	d.mu.Unlock()
	say(w, "The sky is blue. It has been so ")
	d.stay(ctx)
	end(w)
}

// say writes a part of a stream; who asks may be gone.
func say(w http.ResponseWriter, text string) {
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
	_ = http.NewResponseController(w).Flush()
}

func end(w http.ResponseWriter) {
	_, _ = io.WriteString(w,
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
}

// stay returns when what is held is let go.
func (d *double) stay(ctx context.Context) {
	d.mu.Lock()
	d.open++
	release := d.release
	d.mu.Unlock()
	select {
	case <-release:
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.open--
	d.mu.Unlock()
}

func (d *double) letGo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.release)
	d.release = make(chan struct{})
}

// opened waits until so many requests are held.
func (d *double) opened(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.open == n, nil
	})
}

// last returns when the latest request came.
func (d *double) last() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arrived[len(d.arrived)-1]
}

// letOneGo waits until a request is held, and lets it go.
func (d *double) letOneGo(ctx context.Context) error {
	if err := d.opened(ctx, 1); err != nil {
		return err
	}
	d.letGo()
	return nil
}

// lastSpoke returns when the first words of the latest answer were written.
func (d *double) lastSpoke() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spoke
}

// settings are the lines of a server's file for the double.
func (d *double) settings() string {
	var text strings.Builder
	text.WriteString("model_tokens: 1000000000000\nproviders: {double: {kind: compatible, base_url: \"" + d.url +
		"\"}}\nmodels:\n")
	for _, name := range doubleModels {
		text.WriteString("  " + name + ": {use: [double/" + name + "], max_output: 64")
		if name == "limited" {
			text.WriteString(", rpm: 60")
		}
		text.WriteString("}\n")
	}
	return text.String()
}

var doubleModels = []string{"plain", "ticks", "held", "slow", "limited", "words"}

// modelClient asks the double, or a run's socket.
type modelClient struct {
	*http.Client
	url string
}

func (c modelClient) ask(ctx context.Context, model, text string) (*http.Response, error) {
	body := `{"model":"` + model + `","stream":` + strconv.FormatBool(model == "ticks" || model == "held") +
		`,"messages":[{"role":"user","content":"` + text + `"}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(response.Body) // what there is of it
		err = errors.Join(fmt.Errorf("%s: %s", response.Status, answer), response.Body.Close())
	}
	return response, err
}

// whole asks, and reads all of the answer.
func (c modelClient) whole(ctx context.Context, model, text string) error {
	response, err := c.ask(ctx, model, text)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}
