package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// series are the lines of the metrics that begin so.
func (s *server) series(prefix string) (lines []string) {
	s.t.Helper()
	for line := range strings.Lines(s.do("GET", "/metrics", "").wants(s.t, 200).body) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestRequestsAreCountedByThePatternsOfTheirRoutes(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for i := range 20 {
		s.do("GET", fmt.Sprintf("/v1/runs/00000000-0000-7000-8000-%012d", i), "").wants(t, 404)
		s.do("GET", fmt.Sprintf("/canary/%d", i), "").wants(t, 404)
		s.do("GET", "/v1/runs", "", "Authorization: Bearer canary").wants(t, 401)
		s.do(fmt.Sprintf("CANARY%d", i), "/v1/runs", "")
	}
	s.run(`{}`)
	got := s.series("aod_http_requests_total")
	for _, want := range []string{
		`aod_http_requests_total{method="GET",route="/v1/runs/:id",status="4xx"} 20`,
		`aod_http_requests_total{method="GET",route="(none)",status="4xx"} 20`,
		`aod_http_requests_total{method="GET",route="/v1/runs",status="4xx"} 20`,
		`aod_http_requests_total{method="(other)",route="(none)",status="4xx"} 20`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if all := strings.Join(got, "\n"); len(got) > 10 || strings.Contains(strings.ToLower(all), "canary") {
		t.Errorf("%d series:\n%s", len(got), all)
	}
	if took := s.series(`aod_http_request_duration_seconds_count{method="GET",route="/v1/runs/:id"}`); len(took) != 1 {
		t.Errorf("durations %q", took)
	}
}

func TestOpenStreamsAreCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	open := func(n int) {
		t.Helper()
		s.until(func() bool {
			return slices.Equal(s.series("aod_streams_open "), []string{fmt.Sprint("aod_streams_open ", n)})
		})
	}
	id := s.begin()
	open(0)
	var followed []*http.Response
	for range 3 {
		resp, err := client.Do(s.request("GET", "/v1/runs/"+id+"/events", ""))
		must(t, err)
		defer resp.Body.Close()
		followed = append(followed, resp)
	}
	open(3)
	followed[0].Body.Close()
	open(2)
	s.release <- struct{}{}
	open(0)
}
