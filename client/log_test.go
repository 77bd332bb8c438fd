package client

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func wrote(w io.Writer, from, to int) {
	for n := from; n <= to; n++ {
		_, _ = fmt.Fprintf(w, `{"time":"2026-01-02T03:04:05Z","stream":"stdout","text":"line %d"}`+"\n", n)
	}
}

func texts(t *testing.T, c *Client, follow bool) (got []string, err error) {
	t.Helper()
	for entry, failed := range c.Log(t.Context(), runID, follow) {
		if failed != nil {
			return got, failed
		}
		got = append(got, entry.Text)
	}
	return got, nil
}

func lines(n int) (want []string) {
	for i := 1; i <= n; i++ {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	return want
}

func TestALogComesOnceOverLostConnections(t *testing.T) {
	for _, follow := range []bool{false, true} {
		var connections int
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/logs") {
				_, _ = fmt.Fprintf(w, `{"id":%q,"finished_at":"2026-01-02T03:04:05Z"}`, runID)
				return
			}
			if (r.URL.Query().Get("follow") == "true") != follow {
				t.Errorf("asked for %s", r.URL)
			}
			if connections++; connections < 5 {
				wrote(w, 1, 2*connections)
				_, _ = io.WriteString(w, `{"text":"half a li`)
				cut(w)
			}
			wrote(w, 1, 10)
		})
		got, err := texts(t, c, follow)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(10), got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAFollowedLogOutlivesItsServer(t *testing.T) {
	var connections int
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/logs") {
			connections++
			wrote(w, 1, connections) // and an orderly end
			return
		}
		finished := "null"
		if connections == 4 {
			finished = `"2026-01-02T03:04:05Z"`
		}
		_, _ = fmt.Fprintf(w, `{"id":%q,"finished_at":%s}`, runID, finished)
	})
	got, err := texts(t, c, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(4), got); diff != "" {
		t.Error(diff)
	}
}

func TestALogThatIsNone(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":               "hello\n",
		"a line without an end": `{"text":"` + strings.Repeat("x", maxLine),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := texts(t, serve(t, answer(200, "application/x-ndjson", body)), false)
			wantFault(t, err, fault.Unavailable, "can't be understood")
		})
	}
}

func TestALogIsLeftEarly(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		wrote(w, 1, 5)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	for _, err := range c.Log(t.Context(), runID, true) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-gone
}
