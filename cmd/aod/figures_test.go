package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// figure is the value of a series of the metrics, and whether there is one.
func (w *walled) figure(series string) (value float64, is bool) {
	w.Helper()
	code, text := w.asks("operator", http.MethodGet, "/metrics", "")
	if code != http.StatusOK {
		w.Fatalf("%d %s", code, text)
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			value, err := strconv.ParseFloat(rest, 64)
			w.must(err)
			return value, true
		}
	}
	return 0, false
}

func TestTheMetricsTellOfTeamsAndHouse(t *testing.T) {
	w := newTeams(t, nil)
	began := time.Now().Truncate(time.Second)
	wants := func(series string, is func(float64) bool) {
		w.Helper()
		if got, there := w.figure(series); !there || !is(got) {
			w.Errorf("%s is %v, %v", series, got, there)
		}
	}
	equals := func(n float64) func(float64) bool { return func(got float64) bool { return got == n } }
	wants("aod_backup_timestamp_seconds", equals(0))
	id := w.run("asker", "a", func(r api.Record) bool { return r.Question != nil })
	ended := w.record(w.run("writer", "", isOver))
	w.making(http.MethodPost, "/v1/sessions", `{"unit":"talker"}`)
	w.mcpSession("a")
	if code, out, said := command(t, t.Context(), "--data", w.data, "backup", filepath.Join(t.TempDir(), "b.tar.gz")); code != 0 {
		t.Fatal(code, out, said)
	}
	for series, is := range map[string]func(float64) bool{
		`aod_questions_open{team="a"}`:                                             equals(1),
		`aod_questions_open{team="b"}`:                                             equals(0),
		`aod_question_oldest_seconds{team="a"}`:                                    func(age float64) bool { return age > 0 && age < time.Since(began).Seconds()+1 },
		`aod_question_oldest_seconds{team="b"}`:                                    equals(0),
		`aod_sessions_open{team="a"}`:                                              equals(1),
		`aod_sessions_open{team="default"}`:                                        equals(0),
		`aod_mcp_sessions_open`:                                                    equals(1),
		`aod_builds_total{outcome="built"}`:                                        func(n float64) bool { return n > 0 },
		fmt.Sprintf(`aod_team_runs_total{outcome="%s",team="a"}`, ended.Outcome):   equals(2), // its flow calls another
		`aod_database_bytes`:                                                       func(n float64) bool { return n > 4096 },
		`aod_backup_timestamp_seconds`:                                             func(at float64) bool { return at >= float64(began.Unix()) },
		`aod_http_requests_total{method="POST",route="/v1/sessions",status="2xx"}`: equals(1),
	} {
		wants(series, is)
	}
	w.making(http.MethodPost, fmt.Sprintf("/v1/runs/%s/cancel", id), "")
	testkit.Eventually(t, "nothing is asked any more", func() bool {
		n, is := w.figure(`aod_questions_open{team="a"}`)
		return is && n == 0
	})
}
