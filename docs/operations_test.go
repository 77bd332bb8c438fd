package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
)

const grafana = "../examples/grafana"

// Alerts and the board ask for metrics that there are.
func TestTheMetricsOfAlertsAndBoardExist(t *testing.T) {
	known := metrics(t)
	page, _ := readGuide(t, "operations.md")
	texts := map[string]string{"operations.md": page}
	for _, name := range []string{"alerts.yml", "aod.json"} {
		raw, err := os.ReadFile(filepath.Join(grafana, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(raw)
	}
	for name, text := range texts {
		found := regexp.MustCompile(`\baod_[a-z_]+`).FindAllString(text, -1)
		if len(found) < 5 {
			t.Errorf("%s: only %q", name, found)
		}
		for _, metric := range found {
			if !slices.Contains(known, strings.TrimSuffix(metric, "_bucket")) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(texts["aod.json"]), &board); err != nil || len(board.Panels) < 10 {
		t.Errorf("%d panels, %v", len(board.Panels), err)
	}
}

func TestThePageHasEveryAlert(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(grafana, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	text, _ := readGuide(t, "operations.md")
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Expr == "" || !strings.Contains(text, "| `"+rule.Alert+"` |") {
				t.Errorf("the page doesn't have %s", rule.Alert)
			}
		}
	}
}

// Prometheus takes the alerts, and they come when they should.
func TestTheAlertsPassTheirTests(t *testing.T) {
	promtool := programtest.Find(t, "promtool")
	for what, want := range map[string]string{"check rules alerts.yml": "SUCCESS: 13 rules found", "test rules alerts_test.yml": "SUCCESS"} {
		command := exec.CommandContext(t.Context(), promtool, strings.Fields(what)...)
		command.Dir = grafana
		if said, err := command.CombinedOutput(); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("promtool %s: %v, %s", what, err, said)
		}
	}
}
