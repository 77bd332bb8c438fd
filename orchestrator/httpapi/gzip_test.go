package httpapi

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestLongAnswersAreCompressedForWhoTakesThat(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	long := s.run(`{"do":"files","say":"` + strings.Repeat("x", 3000) + `"}`).ID
	testkit.Eventually(t, "nothing of its record changes any more", func() bool {
		told := s.record(long).Transitions
		return told[len(told)-1].State == api.Idle
	})
	for _, c := range []struct {
		name, path, takes string
		zipped            bool
	}{
		{"a long answer", "/v1/runs/" + long, "br;q=1.0, gzip;q=0.8", true},
		{"a short answer", "/v1/runs/" + long + "/files", "gzip", false},
		{"who takes it not", "/v1/runs/" + long, "gzip;q=0, br", false},
		{"who says nothing", "/v1/runs/" + long, "identity", false},
		{"events", "/v1/runs/" + long + "/events", "gzip", false},
		{"a log", "/v1/runs/" + long + "/logs", "gzip", false},
		{"a file", "/v1/runs/" + long + "/files/sub/page.html", "gzip", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.request("GET", c.path, "", "Accept-Encoding: "+c.takes)
			a, err := http.DefaultClient.Do(r)
			must(t, err)
			defer a.Body.Close()
			if zipped := a.Header.Get("Content-Encoding") == "gzip"; zipped != c.zipped {
				t.Fatalf("compressed: %v", zipped)
			}
			if !c.zipped {
				return
			}
			reader, err := gzip.NewReader(a.Body)
			must(t, err)
			plain, err := io.ReadAll(reader)
			must(t, err)
			if string(plain) != s.do("GET", c.path, "").body || a.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("Vary: %s; %s", a.Header.Get("Vary"), plain)
			}
		})
	}
}
