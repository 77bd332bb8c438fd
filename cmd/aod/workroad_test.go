package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// road is between a worker and the server, and may be in a bad state.
type road struct {
	*httptest.Server
	onward   *httputil.ReverseProxy
	straying sync.WaitGroup

	mu     sync.Mutex
	status int                               // what it answers in the server's place; 0: nothing, -1: it is cut
	lose   func(*http.Request) bool          // the answers that are lost
	delay  func(*http.Request) time.Duration // for which requests are on their way
	stray  func(*http.Request) time.Duration // which requests break off, and come to the server so late, or never; 0: it doesn't
	cut    func(path string, b []byte) int   // how many bytes of a part of an answer pass before it is cut; below 0: all
	asked  []string                          // methods and paths
}

func newRoad(t *testing.T, to string) *road {
	base, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	r := &road{onward: &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(base); p.Out.Host = base.Host },
		FlushInterval: -1, Transport: &http.Transport{MaxIdleConnsPerHost: 100},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}}
	r.Server = httptest.NewServer(r)
	r.Config.ErrorLog = nil
	t.Cleanup(func() {
		r.Close()
		r.straying.Wait()
	})
	return r
}

// is changes the state of the road.
func (r *road) is(status int) {
	r.mu.Lock()
	r.status = status
	r.mu.Unlock()
	if status != 0 {
		r.CloseClientConnections()
	}
}

// loses has the answers of some requests be lost.
func (r *road) loses(lose func(*http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = lose
}

// delays has requests be on their way for a time.
func (r *road) delays(delay func(*http.Request) time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

// strays has some requests come to the server when who asked has given up.
func (r *road) strays(stray func(*http.Request) time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stray = stray
}

// rests closes the connections to the server that nobody uses.
func (r *road) rests() { r.onward.Transport.(*http.Transport).CloseIdleConnections() }

// heals makes it a good one.
func (r *road) heals() {
	r.is(0)
	r.loses(nil)
	r.delays(nil)
	r.strays(nil)
}

// lostForGood is how late requests come that are lost.
const lostForGood = time.Duration(math.MaxInt64)

// goAstray brings a request to the server after a time, and its answer to nobody.
func (r *road) goAstray(request *http.Request, late time.Duration) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	later := request.Clone(context.WithoutCancel(request.Context()))
	later.Body, later.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.straying.Go(func() {
		time.Sleep(late)                 // it is on its way
		defer func() { _ = recover() }() // what the server's absence ends with
		r.onward.ServeHTTP(httptest.NewRecorder(), later)
	})
}

// ServeHTTP implements http.Handler.
func (r *road) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	status, lose, cut, delay, stray := r.status, r.lose, r.cut, r.delay, r.stray
	r.asked = append(r.asked, request.Method+" "+request.URL.Path)
	r.mu.Unlock()
	switch {
	case status < 0:
		panic(http.ErrAbortHandler)
	case status > 0:
		w.WriteHeader(status)
		return
	}
	if delay != nil {
		boxed{ctx: request.Context()}.rests(delay(request))
	}
	if stray != nil {
		if late := stray(request); late > 0 {
			if late < lostForGood {
				r.goAstray(request, late)
			}
			panic(http.ErrAbortHandler)
		}
	}
	if lose != nil && lose(request) {
		r.onward.ServeHTTP(httptest.NewRecorder(), request)
		panic(http.ErrAbortHandler)
	}
	if cut != nil {
		request.Body = &cutBody{request.Body, request.URL.Path, cut}
		w = &cutWriter{w, request.URL.Path, cut}
	}
	r.onward.ServeHTTP(w, request)
}

// cutWriter is an answer that may break off.
type cutWriter struct {
	http.ResponseWriter
	path string
	cut  func(string, []byte) int
}

func (w *cutWriter) Write(b []byte) (int, error) {
	if n := w.cut(w.path, b); n >= 0 {
		_, _ = w.ResponseWriter.Write(b[:n]) // it breaks off
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return w.ResponseWriter.Write(b)
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// cutBody is a request that may break off.
type cutBody struct {
	io.ReadCloser
	path string
	cut  func(string, []byte) int
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.cut(b.path, p[:n]) >= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// records has all bytes kept that pass, both ways, and returns what reads them.
func (r *road) records() (all func() string) {
	var mu sync.Mutex
	var text strings.Builder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = func(_ string, b []byte) int {
		mu.Lock()
		defer mu.Unlock()
		_, _ = text.Write(b) // never fails
		return -1
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}
