package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// poolServer answers every request as GET /v1/pool does.
func poolServer(t *testing.T, pool string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pool", say(pool))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestPool(t *testing.T) {
	alone(t)
	since := time.Now().Add(-90 * time.Minute).UTC().Format(time.RFC3339)
	s := poolServer(t, `{"size":8,"waiting":2,"memory_bytes":1073741824,"used_bytes":100663296,"units":[
		{"unit":"hello","wanted":3,"fixed":2,"starting":1,"hits":40,"misses":2,"refills":42,"failures":0,"waiting":[
			{"id":"`+fakeID+`","container":"c1","loaded":true,"since":"`+since+`"},
			{"id":"`+fakeID+`","container":"c2","loaded":false,"since":"`+since+`"}]},
		{"unit":"x\u001b[2J","wanted":0,"fixed":0,"starting":0,"hits":0,"misses":1,"refills":0,"failures":0,"waiting":[]}]}`)
	t.Run("is a table and a line of totals", func(t *testing.T) {
		code, stdout, stderr := command(t, t.Context(), "pool", "--server", s.URL)
		if code != 0 || stderr != "" {
			t.Fatalf("code %d, stderr %s", code, stderr)
		}
		var got []string
		for line := range strings.Lines(stdout) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		want := []string{
			"UNIT WAITING WANTED LOADED STARTING HITS MISSES REFILLS OLDEST",
			"hello 2 3 1 1 40 2 42 1h",
			"x\uFFFD[2J 0 0 0 0 0 1 0 -",
			"2 of 8 wait, with 96.0 MiB of 1.0 GiB of memory",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("is one object as JSON", func(t *testing.T) {
		code, stdout, _ := command(t, t.Context(), "pool", "--json", "--server", s.URL)
		if code != 0 || strings.Count(stdout, "\n") != 1 {
			t.Errorf("code %d, stdout %q", code, stdout)
		}
		contains(t, stdout, `"used_bytes":100663296`, `"container":"c2"`)
	})
	t.Run("says that there is none", func(t *testing.T) {
		none := poolServer(t, `{"size":0,"waiting":0,"memory_bytes":0,"used_bytes":0,"units":[]}`)
		_, stdout, _ := command(t, t.Context(), "pool", "--server", none.URL)
		if want := "no container ever waits here: the setting pool is 0, or the engine is elsewhere\n"; stdout != want {
			t.Errorf("stdout %q", stdout)
		}
	})
	t.Run("takes no argument", func(t *testing.T) {
		code, _, stderr := command(t, t.Context(), "pool", "hello", "--server", s.URL)
		if code != 2 {
			t.Errorf("code %d", code)
		}
		contains(t, stderr, "nothing but flags")
	})
	t.Run("needs a server", func(t *testing.T) {
		code, _, stderr := command(t, t.Context(), "pool")
		if code != 125 {
			t.Errorf("code %d", code)
		}
		contains(t, stderr, "no server runs on the data directory")
	})
}
