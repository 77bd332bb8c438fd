package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// reluctant is a connection whose client doesn't read what is long, until it is let go.
type reluctant struct {
	*httptest.ResponseRecorder
	came  func()
	going <-chan struct{}
}

func (s *reluctant) Write(p []byte) (int, error) {
	if len(p) > 64<<10 {
		s.came()
		<-s.going
	}
	return len(p), nil // a recorder would keep it
}

// TestFollowersThatDoNotReadHoldLittle isn't parallel: it measures the heap.
func TestFollowersThatDoNotReadHoldLittle(t *testing.T) {
	const followers, artifacts, most = 25, 16, 12 << 20
	s := newServer(t, nil)
	id := s.run(`{"do":"show","say":"16"}`).ID
	before := testkit.HeapBytes()
	var came, done sync.WaitGroup
	going := make(chan struct{})
	ctx, leave := context.WithCancel(trusted.Context(t))
	defer leave()
	came.Add(followers)
	for range followers {
		done.Go(func() {
			once := sync.OnceFunc(came.Done)
			defer once()
			r := s.request("GET", "/v1/runs/"+id+"/events", "").WithContext(ctx)
			r.RequestURI = r.URL.RequestURI()
			s.api.Handler().ServeHTTP(&reluctant{ResponseRecorder: httptest.NewRecorder(), came: once, going: going}, r)
		})
	}
	came.Wait()
	if more := testkit.HeapBytes() - before; more > most {
		t.Errorf("%d followers of %d MiB of artifacts hold %d KiB", followers, artifacts, more>>10)
	}
	if held := s.api.opts.Memory.Held(); held < followers<<16+1<<19 || held > most {
		t.Errorf("%d KiB of it are counted", held>>10)
	}
	leave() // what each of them would still be sent takes a minute to encode
	close(going)
	done.Wait()
	if held := s.api.opts.Memory.Held(); held != 0 {
		t.Errorf("%d bytes stay counted", held)
	}
}

func TestATokenHasOnlySoManyStreams(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.begin()
	ours := s.api.auth.known(trusted.Context(t), access.Grant{})
	var ends []func()
	for range maxStreams {
		end, err := httpwire.OpenStream(ours)
		must(t, err)
		ends = append(ends, end)
	}
	tooMany := func(answer answer) {
		t.Helper()
		if answer.wants(t, http.StatusTooManyRequests).Header.Get("Retry-After") == "" {
			t.Error("it isn't said when to come again")
		}
	}
	tooMany(s.do("GET", "/v1/runs/"+id+"/events", ""))
	tooMany(s.do("GET", "/v1/runs/"+id+"/logs?follow=true", ""))
	tooMany(s.do("GET", "/v1/runs/"+id+"/logs", ""))
	if status := s.do("POST", "/agents/run/stream", asks("actor", `{}`)).StatusCode; status != http.StatusTooManyRequests {
		t.Errorf("the stream of an agent: %d", status)
	}
	if end, err := httpwire.OpenStream(s.api.auth.known(trusted.Context(t), access.Grant{Name: "another"})); err != nil {
		t.Errorf("another token: %v", err)
	} else {
		end()
	}
	ends[0]()
	ends[0]() // it counts once
	s.do("GET", "/v1/runs/"+id+"/logs", "").wants(t, 200)
	stream, err := client.Do(s.request("GET", "/v1/runs/"+id+"/events", ""))
	must(t, err)
	tooMany(s.do("GET", "/v1/runs/"+id+"/events", ""))
	must(t, stream.Body.Close())
	s.until(func() bool { return s.do("GET", "/v1/runs/"+id+"/logs", "").StatusCode == 200 })
	for _, end := range ends {
		end()
	}
	s.release <- struct{}{}
}
