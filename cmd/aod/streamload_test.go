package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	mostStreams = 200 // at once
	// idleConnections to the engine are spared for a while, with two goroutines each: fewer
	// than one for each stream.
	idleConnections = 8
)

// storeFiles are those of the store's connections for reading, which are opened when so many
// read at once, and stay: two of each.
var storeFiles = 2 * max(4, runtime.NumCPU())

func TestManyStreamsLeaveTheServerAsItWas(t *testing.T) {
	n := min(long(t, "AOD_LOAD"), mostStreams)
	s := newServer(t, "--concurrency", strconv.Itoa(slots), "--queue", strconv.Itoa(mostStreams+slots), "--pool", "0")
	s.program = shipped.Path(t)
	s.addWorker("streamed", "")
	s.start()
	l := streaming{load: load{server: s, http: &http.Client{Transport: &http.Transport{}}}, n: n}
	s.await(s.mustSubmit("streamed", work{})) // the image is built, connections are made
	before := l.footprint()

	memory := l.watchMemory(l.readToTheEnd)
	t.Logf("%d streams at once: MiB of memory before %.1f, at most %.1f, after %.1f", n, memory.before, memory.most, memory.after)
	l.nothingLeft(before)

	memory = l.watchMemory(l.leave)
	t.Logf("%d streams that are left: MiB of memory before %.1f, at most %.1f, after %.1f", n, memory.before, memory.most, memory.after)
	l.nothingLeft(before)
	before.files += storeFiles
	l.checkFootprint(before, 0)
}

// streaming is a server with many streams.
type streaming struct {
	load
	n int
}

// stream asks for a task, and fails the test unless it is answered with a stream.
func (l *streaming) stream(ctx context.Context, i, ticks int) (*http.Response, error) {
	body := fmt.Sprintf(`{"request_id":"r-%d","task_type":"STREAMED","user_id":"u-%d","inputs":{"mark":%d,"ticks":%d}}`, i, i%3, i, ticks)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url()+agenthttp.StreamPath, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := l.http.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(response.Body)
		response.Body.Close()
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, raw)
	}
	return response, err
}

// readToTheEnd has all streams at once, and wants one terminal event of each, at its end.
func (l *streaming) readToTheEnd() {
	began := time.Now()
	var all sync.WaitGroup
	for i := range l.n {
		all.Go(func() {
			if err := l.read(i); err != nil {
				l.t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	all.Wait()
	l.t.Logf("%d streams took %v", l.n, time.Since(began).Round(time.Millisecond))
}

func (l *streaming) read(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	response, err := l.stream(ctx, i, 2)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := httpwire.NewEventReader(response.Body, agenthttp.DefaultLimits().Events())
	var last httpwire.Event
	terminal, events := 0, 0
	for {
		m, err := decoder.Next()
		if errors.Is(err, io.EOF) && !decoder.Unfinished() {
			break
		}
		if err != nil {
			return err
		}
		events, last = events+1, m
		if agenthttp.EventType(m.Name).Terminal() {
			terminal++
		}
	}
	mark := fmt.Sprintf(`"outputs":{"mark":%d}`, i)
	if terminal != 1 || last.Name != "final" || events < 3 || !strings.Contains(last.Data, mark) || !strings.Contains(last.Data, fmt.Sprintf(`"request_id":"r-%d"`, i)) {
		return fmt.Errorf("%d terminal events of %d, the last is %+v", terminal, events, last)
	}
	return nil
}

// leave has all streams at once, whose clients go away when each has begun: some runs run,
// most of them wait. No run goes on without its client.
func (l *streaming) leave() {
	ctx, goAway := context.WithCancel(context.Background())
	defer goAway()
	var begun, gone sync.WaitGroup
	begun.Add(l.n)
	runs := make([]string, l.n)
	for i := range l.n {
		gone.Go(func() {
			response, err := l.stream(ctx, i, 6000) // ten minutes
			if err != nil {
				l.t.Errorf("stream %d: %v", i, err)
				begun.Done()
				return
			}
			defer response.Body.Close()
			runs[i] = response.Header.Get("AOD-Run")
			begun.Done()
			_, _ = io.Copy(io.Discard, response.Body) // until the client goes away
		})
	}
	begun.Wait()
	testkit.Eventually(l.t, "some of them run", func() bool { return len(l.containers()) >= slots })
	goAway()
	gone.Wait()
	left := time.Now()
	l.awaitAll()
	l.t.Logf("their runs have ended %v later", time.Since(left).Round(time.Millisecond))
	for _, id := range runs {
		if record, err := l.client.Runs.Get(context.Background(), id); err != nil || record.Outcome != api.WasCancelled {
			l.t.Errorf("run %q of a client that has gone: %s, %v", id, record.Outcome, err)
			return
		}
	}
}

// nothingLeft waits until no run goes on, and no goroutine but those that there were.
func (l *streaming) nothingLeft(before footprint) {
	l.t.Helper()
	l.awaitAll()
	testkit.Eventually(l.t, "no container is left", func() bool { return len(l.containers()) == 0 })
	var now footprint
	testkit.Eventually(l.t, fmt.Sprintf("the server has no more goroutines than %+v", before), func() bool {
		now = l.footprint()
		return now.goroutines <= before.goroutines+2*idleConnections
	})
	l.t.Logf("before %+v, now %+v", before, now)
}

// memory is what the server's process has in memory, in MiB.
type memory struct{ before, most, after float64 }

func (l *streaming) watchMemory(do func()) memory {
	l.t.Helper()
	m := memory{before: l.resident()}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			m.most = max(m.most, l.resident())
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	do()
	close(done)
	watch.Wait()
	m.after = l.resident()
	if m.most > maxMemory>>20 {
		l.t.Errorf("the server took %.0f MiB of memory", m.most)
	}
	return m
}

var residentRule = regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`)

func (l *streaming) resident() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.process.Process.Pid))
	if err != nil {
		return 0 // a footprint skips the test where there is no /proc
	}
	parts := residentRule.FindSubmatch(status)
	if parts == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseFloat(string(parts[1]), 64)
	return kilobytes / 1024
}
