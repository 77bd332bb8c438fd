package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func findPrometheus(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("no Prometheus is installed, and `make long` unpacks Debian's: %v", err)
	}
	return program
}

// prometheus is one that reads a server each second, by the files in examples.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, program, server, token string) *prometheus {
	t.Helper()
	dir, address := t.TempDir(), programtest.FreeAddress(t)
	write(t, token, dir, "aod.token")
	for name, change := range map[string]*strings.Replacer{
		"alerts.yml":     strings.NewReplacer(),
		"prometheus.yml": strings.NewReplacer("/etc/prometheus/aod.token", filepath.Join(dir, "aod.token"), "127.0.0.1:7070", server),
	} {
		raw, err := os.ReadFile(filepath.Join(grafana, name))
		if err != nil {
			t.Fatal(err)
		}
		text := change.Replace(string(raw))
		if name == "prometheus.yml" {
			text = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + text
		}
		write(t, text, dir, name)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // its data are the test's
		_ = process.Wait()
		if raw, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("Prometheus says:\n%s", raw)
		}
	})
	return &prometheus{t, "http://" + address}
}

// get asks for something of the API below /api/v1, and reports whether that was answered.
func (p *prometheus) get(path string, data any) (answered bool) {
	response, err := http.Get(p.url + "/api/v1/" + path)
	if err != nil {
		return false // it begins
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false
	}
	if response.StatusCode == http.StatusBadRequest {
		p.t.Fatalf("%s: %s", path, answer.Error)
	}
	return answer.Status == "success" && json.Unmarshal(answer.Data, data) == nil
}

// sample is one of a result: its labels, and when it is what.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// await returns the first answer to a query that has something in it but zeros, unless there may be
// none: sessions with agents, and builds of images that an earlier test has left.
func (p *prometheus) await(query string) string {
	p.t.Helper()
	var found string
	testkit.Eventually(p.t, query+" has an answer", func() bool {
		var data struct{ Result []sample }
		if !p.get("query?"+url.Values{"query": {query}}.Encode(), &data) {
			return false
		}
		any := false
		for _, s := range data.Result {
			text, _ := s.Value[1].(string)
			n, err := strconv.ParseFloat(text, 64)
			any = any || err == nil && (n > 0 || strings.HasSuffix(query, "== 0") || strings.Contains(query, "aod_sessions_open") || strings.Contains(query, "aod_builds_total"))
		}
		raw, _ := json.Marshal(data.Result)
		found = string(raw)
		return any
	})
	return found
}

// judgeRules finds that each alert was evaluated, and that none says the server is down.
func (p *prometheus) judgeRules() {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, State, Health, LastError string }
		}
	}
	testkit.Eventually(p.t, "Prometheus lists its rules", func() bool { return p.get("rules", &data) })
	rules := 0
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			rules++
			if rule.Health != "ok" || rule.Name == "AODDown" && rule.State != "inactive" {
				p.t.Errorf("alert %s is %s, %s %s", rule.Name, rule.State, rule.Health, rule.LastError)
			}
			p.t.Logf("alert %s is %s", rule.Name, rule.State)
		}
	}
	if rules < 13 {
		p.t.Errorf("there are %d rules", rules)
	}
}
