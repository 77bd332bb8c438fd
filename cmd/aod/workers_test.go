package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// workersServer is a server of which workers are asked, and what was.
func workersServer(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/workers", say(fmt.Sprintf(`{"workers":[
		{"name":"big","state":"connected","drained":true,"version":"1.4.0","slots":8,"running":3,"labels":["gpu","x\u001b[2J"],"seen_at":%q},
		{"name":"late","state":"invited","running":0,"expires_at":%q},{"name":"new","state":"invited","running":0,"expires_at":%q}]}`,
		ago(90*time.Second), ago(time.Minute), ago(-23*time.Hour-time.Minute))))
	mux.HandleFunc("POST /v1/workers", say(`{"name":"big","home":"h1","pins":["sha256/x"],"token":"aod_T","expires_at":"2026-01-02T03:04:05Z"}`))
	mux.HandleFunc("POST /v1/workers/{name}/{verb}", say(`{"name":"big","state":"connected","running":3}`))
	mux.HandleFunc("DELETE /v1/workers/{name}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body := ""
		if r.Method == http.MethodPost {
			raw, _ := io.ReadAll(r.Body)
			body = " " + string(raw)
		}
		all = append(all, r.Method+" "+r.URL.Path+body)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func TestWorkersByCommand(t *testing.T) {
	alone(t)
	url, asked := workersServer(t)
	t.Setenv("AOD_SERVER", url)
	says := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := command(t, t.Context(), append([]string{"worker"}, args...)...)
		if code != 0 {
			t.Fatalf("%q: code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	for given, want := range map[string]struct {
		server string
		warned bool
	}{
		"": {url, true}, "https://aod.example.com/": {"https://aod.example.com", false}, "http://localhost:1": {"http://localhost:1", true},
		"https://[::1]": {"https://[::1]", true}, "http://0.0.0.0:7070": {"http://0.0.0.0:7070", true}, "http://10.0.0.5:7070/aod": {"http://10.0.0.5:7070/aod", false},
	} {
		args := []string{"add", "big"}
		if given != "" {
			args = append(args, "--url", given)
		}
		stdout, stderr := says(args...)
		var join api.WorkerJoin
		if err := json.Unmarshal([]byte(stdout), &join); err != nil || join.Server != want.server || join.Token != "aod_T" || join.Home != "h1" || len(join.Pins) != 1 {
			t.Errorf("%q: %v, %+v", given, err, join)
		}
		if warned := strings.Contains(stderr, "the address "+want.server+" is this machine's alone: a worker on another one needs --url"); warned != want.warned || !strings.Contains(stderr, "aod work --join FILE") {
			t.Errorf("%q: %s", given, stderr)
		}
	}
	table, _ := says("ls")
	for _, row := range []string{
		`NAME +STATE +SLOTS +LABELS +VERSION +LAST SEEN\n`, `big +connected, drained +3/8 +gpu,x\S+ +1\.4\.0 +1m ago\n`,
		`late +invitation expired +- +- +- +never\n`, `new +invited for 23h +- +- +- +never\n`,
	} {
		if !regexp.MustCompile(`(?m)^` + row).MatchString(table) {
			t.Errorf("no row %s in\n%s", row, table)
		}
	}
	if strings.Contains(table, "\x1b") {
		t.Errorf("%q", table)
	}
	if listed, _ := says("ls", "--json"); strings.Count(listed, "\n") != 3 || !strings.HasPrefix(listed, `{"name":"big","state":"connected","drained":true,`) {
		t.Error(listed)
	}
	before := len(asked())
	for _, c := range [][]string{{"drain", "big takes nothing new; it has 3 runs"}, {"undrain", "big takes runs again"}, {"rm", "big is removed"}} {
		if stdout, stderr := says(c[0], "big"); stdout != "" || !strings.Contains(stderr, c[1]) {
			t.Errorf("%s: %q, %q", c[0], stdout, stderr)
		}
	}
	if got := asked(); !slices.Contains(got, `POST /v1/workers {"name":"big"}`) || fmt.Sprint(got[before:]) != "[POST /v1/workers/big/drain  POST /v1/workers/big/undrain  DELETE /v1/workers/big]" {
		t.Errorf("asked %q", got)
	}
	if _, stdout, _ := command(t, t.Context(), "__complete", "worker", "drain", ""); stdout != "big\tconnected\nlate\tinvited\nnew\tinvited\n:4\n" {
		t.Errorf("completed with %q", stdout)
	}
	before = len(asked())
	for _, wrong := range [][]string{{"add"}, {"add", "a", "b"}, {"add", "a", "--url", "aod.example.com"}, {"add", "a", "--url", "https://u:p@x"}, {"drain"}, {"rm"}, {"fly"}, {"ls", "x"}} {
		if code, stdout, stderr := command(t, t.Context(), append([]string{"worker"}, wrong...)...); code != 2 || stdout != "" {
			t.Errorf("%q: code %d, %q, %s", wrong, code, stdout, stderr)
		}
	}
	if got := asked()[before:]; len(got) > 0 {
		t.Errorf("for mistakes it was asked %q", got)
	}
	t.Setenv("AOD_SERVER", "")
	if code, _, stderr := command(t, t.Context(), "worker", "ls"); code == 0 || !strings.Contains(stderr, "no server runs on the data directory") {
		t.Errorf("without a server: code %d, %s", code, stderr)
	}
}
