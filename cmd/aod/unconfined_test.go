package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestAnEngineWithoutSeccompWantsAWordOfTheOperator(t *testing.T) {
	t.Parallel()
	t.Run("it isn't served with", func(t *testing.T) {
		s := newServer(t)
		s.env = []string{"DOCKER_HOST=" + engineWithoutSeccomp(t)}
		s.begin()
		if code := s.exitCode(); code != 125 || !strings.Contains(s.log(), "has no seccomp") || !strings.Contains(s.log(), "allow_unconfined: true") {
			t.Errorf("exit code %d:\n%s", code, s.log())
		}
	})
	t.Run("it is with that word", func(t *testing.T) {
		s := newServer(t, "--allow-unconfined")
		s.env = []string{"DOCKER_HOST=" + engineWithoutSeccomp(t)}
		s.addWorker("worker", "")
		s.start()
		if record := s.await(s.mustSubmit("worker", work{Mark: 1})); record.Outcome != api.Success {
			t.Errorf("%s: %+v", record.Outcome, record.Error)
		}
	})
	t.Run("one that lost it gets no run", func(t *testing.T) {
		line := newEngineLine(t, "unix")
		s := newServer(t, "--retries", "0")
		s.env = []string{"DOCKER_HOST=" + line.host()}
		s.addWorker("worker", "")
		line.cut()
		s.start() // it waits for its engine
		line.engine = strings.TrimPrefix(engineWithoutSeccomp(t), "unix://")
		line.join()
		record := s.await(s.mustSubmit("worker", work{Mark: 1}))
		if record.Outcome != api.SystemError || !strings.Contains(record.Error.Message, "has no seccomp") {
			t.Errorf("%s: %+v", record.Outcome, record.Error)
		}
		if s.status("/readyz") == http.StatusOK {
			t.Error("the server says that it is ready")
		}
	})
}

// engineWithoutSeccomp is the tests' engine as if its kernel had no seccomp: it says so, and
// starts nothing that comes with a profile.
func engineWithoutSeccomp(t *testing.T) string {
	t.Helper()
	line := newEngineLine(t, "unix")
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", line.engine) }}
	proxy.ModifyResponse = withoutSeccomp
	proxy.ErrorLog = log.New(io.Discard, "", 0) // requests that end with the server
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			body, err := io.ReadAll(r.Body)
			if err != nil || bytes.Contains(body, []byte(`"seccomp=`)) {
				http.Error(w, `{"message":"seccomp is not enabled in your kernel, cannot run a container with it"}`, http.StatusInternalServerError)
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	address := filepath.Join(filepath.Dir(line.address), "bare")
	var err error
	if server.Listener, err = net.Listen("unix", address); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.CloseClientConnections) // an engine that a test leaves is asked for nothing more
	return "unix://" + address
}

// withoutSeccomp takes it out of what an engine says of itself.
func withoutSeccomp(response *http.Response) error {
	if !strings.HasSuffix(response.Request.URL.Path, "/info") {
		return nil
	}
	var info map[string]json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&info); err != nil {
		return err
	}
	info["SecurityOptions"] = json.RawMessage(`["name=apparmor"]`)
	raw, err := json.Marshal(info)
	if err != nil {
		return err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	response.Header.Del("Content-Length")
	return nil
}
