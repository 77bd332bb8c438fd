package httpwire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// serveWith serves a handler until stop, and returns what Serve does.
func serveWith(t *testing.T, s Server) (address string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.Name, s.HeaderBytes, s.ErrorLog = "http", 4<<10, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	return listener.Addr().String(), func() error {
		cancel()
		return <-served
	}
}

func send(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	return conn
}

func TestAServerThatEndsLetsAttachedRequestsAnswer(t *testing.T) {
	begun := make(chan struct{})
	address, stop := serveWith(t, Server{Drain: time.Minute, Requests: Outliving, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, done := Attached(r.Context())
		defer done()
		close(begun)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrServerEnds) || !ServerEnds(r.Context()) || r.Context().Err() != nil {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "told")
	})})
	conn := send(t, address)
	<-begun
	must(t, stop())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != 200 || string(body) != "told" {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestRequestsEndWithTheServerUnlessTheyOutliveIt(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	address, stop := serveWith(t, Server{Drain: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended <- r.Context().Err()
	})})
	send(t, address)
	<-begun
	must(t, stop())
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestRequestsBeyondTheDrainAreCut(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	address, stop := serveWith(t, Server{Drain: 10 * time.Millisecond, Requests: Outliving, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	})})
	conn := send(t, address)
	<-begun
	must(t, stop())
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it was answered")
	}
	close(release)
}

func TestAListenerThatFailsIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	s := Server{Name: "http", ErrorLog: slog.New(slog.DiscardHandler)}
	if err := s.Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestARequestWithoutAServerIsOnlyAttachedToItself(t *testing.T) {
	request, end := context.WithCancel(t.Context())
	ctx, stop := Attached(request)
	defer stop()
	end()
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), context.Canceled) || ServerEnds(request) {
		t.Errorf("%v", context.Cause(ctx))
	}
}
