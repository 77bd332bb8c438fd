package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// fakeAPI is an engine's HTTP side that speaks one version and answers by path.
type fakeAPI struct {
	version string
	answers map[string]http.HandlerFunc // by method and path without the version

	mu    sync.Mutex
	paths []string
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.paths = append(f.paths, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	w.Header().Set("Api-Version", f.version)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/_ping" {
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v"+f.version)
	if answer := f.answers[r.Method+" "+path]; ok && answer != nil {
		answer(w, r)
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"message":"client version is not %s, or no such path: %s"}`, f.version, r.URL.Path)
}

func (f *fakeAPI) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.paths...)
}

// connect returns an engine that talks to the API over TCP.
func connect(t *testing.T, api http.Handler) *Engine {
	t.Helper()
	t.Setenv("DOCKER_CERT_PATH", "")
	t.Setenv("DOCKER_TLS_VERIFY", "")
	t.Setenv("DOCKER_API_VERSION", "")
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return newEngine(t, "tcp://"+server.Listener.Addr().String())
}

func newEngine(t *testing.T, host string) *Engine {
	t.Helper()
	e, err := New(Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestTheAPIVersionIsNegotiatedOnce(t *testing.T) {
	for _, version := range []string{"1.41", "1.50"} {
		t.Run(version, func(t *testing.T) {
			api := &fakeAPI{version: version, answers: map[string]http.HandlerFunc{
				"POST /containers/x/start":  answer(http.StatusNoContent, ""),
				"POST /containers/x/attach": answer(http.StatusNotFound, `{"message":"No such container: x"}`),
				"GET /info":                 answer(http.StatusOK, `{"NCPU":2}`),
				"GET /version":              answer(http.StatusOK, `{"Version":"1"}`),
			}}
			e := connect(t, api)
			// Attach first: it doesn't go through the client's own request path.
			if _, err := e.Attach(t.Context(), "x"); !fault.Is(err, fault.NotFound) {
				t.Errorf("Attach: %v", err)
			}
			for range 3 {
				if err := e.Start(t.Context(), "x"); err != nil {
					t.Fatal(err)
				}
			}
			info, err := e.Probe(t.Context())
			if err != nil || info.APIVersion != version || info.Local {
				t.Errorf("%+v, %v", info, err)
			}
			if pings := strings.Count(strings.Join(api.requests(), "\n"), "/_ping"); pings != 1 {
				t.Errorf("%d pings in %q", pings, api.requests())
			}
		})
	}
}

func TestNoCompressionIsAskedFor(t *testing.T) {
	var accepted string
	e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
		"POST /containers/x/start": func(w http.ResponseWriter, r *http.Request) { accepted = r.Header.Get("Accept-Encoding") },
	}})
	if err := e.Start(t.Context(), "x"); err != nil || accepted != "" {
		t.Errorf("Accept-Encoding is %q, error %v", accepted, err)
	}
}

func TestAnEngineThatIsNotThere(t *testing.T) {
	dead := filepath.Join(t.TempDir(), "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for name, c := range map[string]struct{ host, msg string }{
		"a socket that doesn't exist":   {"unix:///nonexistent/docker.sock", "the socket does not exist"},
		"a socket that nobody serves":   {"unix://" + dead, "does not answer"},
		"a TCP port that nobody serves": {"tcp://127.0.0.1:1", "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, c.host)
			_, probeErr := e.Probe(t.Context())
			_, attachErr := e.Attach(t.Context(), "x")
			_, waitErr := e.NextExit(t.Context(), "x")
			_, buildErr := e.Build(t.Context(), runtime.BuildSpec{WriteContext: func(io.Writer) error { return nil }}, nil)
			for call, err := range map[string]error{
				"Probe": probeErr, "Attach": attachErr, "NextExit": waitErr, "Build": buildErr,
				"Start": e.Start(t.Context(), "x"), "Stop": e.Stop(t.Context(), "x", 0), "Remove": e.Remove(t.Context(), "x"),
			} {
				public := fault.Public(err)
				if public.Kind != fault.Unavailable || !strings.Contains(public.Msg, c.msg) || !strings.Contains(public.Msg, c.host) || public.Hint == "" {
					t.Errorf("%s: %v; hint %q", call, err, public.Hint)
				}
			}
		})
	}
}

func TestAnEngineThatHangsUp(t *testing.T) {
	for name, hangUp := range map[string]func(net.Conn) error{
		"before its answer":  func(net.Conn) error { return nil },
		"amid its answer":    func(c net.Conn) error { _, err := io.WriteString(c, "HTTP/1.1 200 O"); return err },
		"before all of it":   shortAnswer("200 OK", `{"Id":`),
		"amid its complaint": shortAnswer("500 Internal Server Error", `{"mess`),
	} {
		t.Run(name, func(t *testing.T) {
			end := func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					err = errors.Join(hangUp(conn), conn.Close())
				}
				if err != nil {
					t.Error(err)
				}
			}
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"POST /containers/x/attach": end, "POST /containers/x/start": end, "GET /containers/x/json": end, "POST /containers/create": end,
			}})
			_, attachErr := e.Attach(t.Context(), "x")
			_, inspectErr := e.Inspect(t.Context(), "x")
			_, createErr := e.Create(t.Context(), runtime.ContainerSpec{})
			for call, err := range map[string]error{"Attach": attachErr, "Inspect": inspectErr, "Create": createErr, "Start": e.Start(t.Context(), "x")} {
				if err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s: %v", call, err)
				}
			}
			if attachErr == nil || inspectErr == nil || createErr == nil {
				t.Errorf("no error: %v, %v, %v", attachErr, inspectErr, createErr)
			}
		})
	}
}

// shortAnswer promises more than there is.
func shortAnswer(status, body string) func(net.Conn) error {
	return func(c net.Conn) error {
		_, err := fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n%s", status, body)
		return err
	}
}

func TestNoPermissionSaysWhatToDo(t *testing.T) {
	e := newEngine(t, "unix:///var/run/docker.sock")
	denied := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
	public := fault.Public(e.faultOf(t.Context(), call{"list", "containers", ""}, denied))
	if public.Kind != fault.Unavailable || !strings.Contains(public.Msg, "no permission") || !strings.Contains(public.Hint, "docker group") {
		t.Errorf("%v; hint %q", public, public.Hint)
	}
}

// runcRefusal is how Docker begins to tell what its runtime refused.
const runcRefusal = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: "

func TestRefusalsBecomeFaults(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		msg    string
		kind   fault.Kind
		public string
	}{
		"a missing image":        {404, "No such image: secret", fault.NotFound, "image debian"},
		"an unknown runtime":     {400, "Unknown runtime specified runsc", fault.Unsupported, "isolation runtime"},
		"a newer one's words":    {400, "unknown or invalid runtime name: runsc", fault.Unsupported, "isolation runtime"},
		"too little memory":      {400, "Minimum memory limit allowed is 6MB", fault.Unsupported, `memory limit (limits.memory): it said "Error response from daemon: Minimum memory limit allowed is 6MB"`},
		"too little processor":   {400, runcRefusal + `error setting cgroup config for procHooks process: failed to write "100": write /sys/secret/cpu.cfs_quota_us: invalid argument: unknown`, fault.Unsupported, `(limits.cpus): it said "error during container init: error setting cgroup config for procHooks process: failed to write \"100\": write … invalid argument"`},
		"too few processes":      {400, runcRefusal + `failed to write "1": write /secret/pids.max: permission denied: unknown`, fault.Unsupported, "(limits.pids): it said"},
		"too many open files":    {400, runcRefusal + "error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: unknown", fault.Unsupported, `error setting rlimit type 7: operation not permitted"`},
		"no seccomp":             {500, "seccomp is not enabled in your kernel, cannot run a custom seccomp profile", fault.Unsupported, "no seccomp"},
		"a missing mount source": {400, `invalid mount config for type "bind": bind source path does not exist: /secret`, fault.Internal, "does not exist"},
		"an image in use":        {409, `conflict: unable to remove repository reference "secret" (must force) - container secret is using its referenced image 3c`, fault.Conflict, "has the image"},
		"a taken name":           {409, `Conflict. The container name "/secret" is already in use by container "secret". You have to remove`, fault.Conflict, "of this name"},
		"another conflict":       {409, "Conflict. The secret is busy", fault.Internal, "image debian"},
		"anything else":          {500, "secret", fault.Internal, "image debian"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"message": c.msg})
			if err != nil {
				t.Fatal(err)
			}
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"POST /containers/create": answer(c.status, string(body)),
			}})
			_, err = e.Create(t.Context(), runtime.ContainerSpec{Image: "debian"})
			public := fault.Public(err)
			if public.Kind != c.kind || !strings.Contains(public.Msg, c.public) || strings.Contains(public.Msg+public.Hint, "secret") {
				t.Errorf("kind %v, message %q, hint %q", public.Kind, public.Msg, public.Hint)
			}
			if !strings.Contains(err.Error(), c.msg) {
				t.Errorf("the operator doesn't see the cause: %v", err)
			}
		})
	}
}

func TestATooLargeCPULimitIsClampedAndRemembered(t *testing.T) {
	var asked []int64
	e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			var body struct{ HostConfig struct{ NanoCpus int64 } }
			json.NewDecoder(r.Body).Decode(&body)
			asked = append(asked, body.HostConfig.NanoCpus)
			if body.HostConfig.NanoCpus > 2e9 {
				answer(http.StatusBadRequest, `{"message":"Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available"}`)(w, r)
				return
			}
			answer(http.StatusCreated, `{"Id":"x"}`)(w, r)
		},
	}})
	for _, cpus := range []float64{8, 8, 0.5} {
		spec := runtime.ContainerSpec{Limits: runtime.ContainerLimits{CPUs: cpus}}
		if _, err := e.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if want := fmt.Sprint([]int64{8e9, 2e9, 2e9, 5e8}); fmt.Sprint(asked) != want {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func TestReferencesCanNotBecomeOtherCalls(t *testing.T) {
	e := connect(t, http.NotFoundHandler())
	for _, ref := range []string{"", "../containers/json", "a/../../x", "a?force=1", "a#b", "a b", "-a", strings.Repeat("a", 600)} {
		if _, err := e.Image(t.Context(), ref); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "an image reference") {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestAnEngineThatDiesWhileAContainerRuns(t *testing.T) {
	hang := make(chan struct{})
	e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
		"POST /containers/x/wait": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-hang
			panic(http.ErrAbortHandler)
		},
	}})
	exits, err := e.NextExit(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	close(hang)
	select {
	case exit := <-exits:
		if !fault.Is(exit.Err, fault.Unavailable) {
			t.Errorf("exit %+v", exit)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("no exit came")
	}
}

func TestAttachToAnEngineThatDoesNotAnswerEndsWithItsContext(t *testing.T) {
	e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
		"POST /containers/x/attach": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.Attach(ctx, "x"); !fault.Is(err, fault.Deadline) {
		t.Errorf("error %v", err)
	}
}

func TestUnreadableCertificatesAreAFault(t *testing.T) {
	t.Setenv("DOCKER_CERT_PATH", t.TempDir())
	_, err := New(Options{Host: "tcp://127.0.0.1:1"})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Hint, "ca.pem") {
		t.Errorf("error %v", err)
	}
	if _, err := New(Options{Host: "unix://" + filepath.Join(t.TempDir(), "x")}); err != nil {
		t.Errorf("a local socket needs no certificates: %v", err)
	}
}

func TestInspectWaitsForTheReasonOfAKill(t *testing.T) {
	for name, c := range map[string]struct {
		first     string
		wantOOM   bool
		wantCalls int
	}{
		"killed under a memory limit":    {`{"State":{"ExitCode":137},"HostConfig":{"Memory":1}}`, true, 3},
		"killed without a memory limit":  {`{"State":{"ExitCode":137},"HostConfig":{"Memory":0}}`, false, 1},
		"ended by itself":                {`{"State":{"ExitCode":1},"HostConfig":{"Memory":1}}`, false, 1},
		"killed for memory, known since": {`{"State":{"ExitCode":137,"OOMKilled":true},"HostConfig":{"Memory":1}}`, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"GET /containers/x/json": func(w http.ResponseWriter, r *http.Request) {
					if calls++; calls < 3 {
						io.WriteString(w, c.first)
						return
					}
					io.WriteString(w, `{"State":{"ExitCode":137,"OOMKilled":true},"HostConfig":{"Memory":1}}`)
				},
			}})
			var state runtime.ContainerState
			var err error
			for range 10 { // it asks for a tenth of a second alone, and a busy machine may take longer for two calls
				calls = 0
				if state, err = e.Inspect(t.Context(), "x"); err == nil && state.OOMKilled == c.wantOOM && calls == c.wantCalls {
					return
				}
			}
			t.Errorf("%+v, %v after %d calls", state, err, calls)
		})
	}
}

func TestNothingEndsBeforeItsStart(t *testing.T) {
	for name, c := range map[string]struct{ state, want string }{
		"a very short run": {`{"StartedAt":"2026-01-02T03:04:05.2Z","FinishedAt":"2026-01-02T03:04:05.1Z"}`, "2026-01-02T03:04:05.2Z"},
		"a longer one":     {`{"StartedAt":"2026-01-02T03:04:05.2Z","FinishedAt":"2026-01-02T03:04:05.3Z"}`, "2026-01-02T03:04:05.3Z"},
		"one that goes on": {`{"Running":true,"StartedAt":"2026-01-02T03:04:05.2Z","FinishedAt":"0001-01-01T00:00:00Z"}`, "0001-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"GET /containers/x/json": answer(http.StatusOK, `{"State":`+c.state+`}`),
			}})
			state, err := e.Inspect(t.Context(), "x")
			if got := state.FinishedAt.Format(time.RFC3339Nano); err != nil || got != c.want {
				t.Errorf("it ended at %s, %v", got, err)
			}
		})
	}
}
