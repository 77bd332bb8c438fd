package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/egresses"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/upstreams"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers"
	"github.com/agent-on-demand/aod/orchestrator/httpapi"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/schemas"
)

const apiGuide = "server-api.md"

func TestTheRoutesShownAreThoseThatThereAre(t *testing.T) {
	text, _ := readGuide(t, apiGuide)
	var shown []string
	for _, m := range regexp.MustCompile(`(?m)^### ([A-Z]+ /.*)$`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, m[1])
	}
	slices.Sort(shown)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(routes(t))), shown); diff != "" {
		t.Errorf("served and shown (+):\n%s", diff)
	}
}

// routes lists what is served, as "METHOD /path".
func routes(t *testing.T) map[string]bool {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(schemas.OpenAPI(""), &document); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for path, operations := range document.Paths {
		for method := range operations {
			all[strings.ToUpper(method)+" "+path] = true
		}
	}
	return all
}

func TestTheRoutesNamedExist(t *testing.T) {
	known := routes(t)
	for _, name := range guides {
		if name == "models.md" {
			continue // its routes are those of the capsule API
		}
		for _, span := range spansOf(t, name) {
			if regexp.MustCompile(`^[A-Z]+ /`).MatchString(span) && !known[span] {
				t.Errorf("%s: there is no %s", name, span)
			}
		}
	}
}

func spansOf(t *testing.T, name string) []string {
	t.Helper()
	text, _ := readGuide(t, name)
	var found []string
	for _, m := range spans.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		found = append(found, m[1])
	}
	return found
}

func TestTheErrorsShownAreThoseThatThereAre(t *testing.T) {
	text, _ := readGuide(t, apiGuide)
	var shown []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(sectionOf(t, text, "Errors"), -1) {
		shown = append(shown, m[1]+" "+m[2])
	}
	slices.Sort(shown)
	var there []string
	for _, kind := range kinds() {
		there = append(there, fmt.Sprintf("%s %d", kind, fault.HTTPStatus(fault.New(kind, ""))))
	}
	slices.Sort(there)
	if diff := cmp.Diff(there, shown); diff != "" {
		t.Errorf("faults and shown (+):\n%s", diff)
	}
}

// kinds lists every kind of fault. What lies behind the last one is Internal.
func kinds() []fault.Kind {
	all := []fault.Kind{fault.Internal}
	for k := fault.Internal + 1; k.String() != fault.Internal.String(); k++ {
		all = append(all, k)
	}
	return all
}

func TestTheServersTablesAreWhole(t *testing.T) {
	cases := []struct {
		name, guide, section string
		want                 []string
	}{
		{"every state", apiGuide, "GET /v1/runs/{id}", enumOf(t, "run", "state")},
		{"every event", apiGuide, "GET /v1/runs/{id}/events", enumOf(t, "event", "event")},
		{"every category", "server.md", "Errors and retries", []string{
			string(api.CategoryTransient), string(api.CategoryPermanent),
			string(api.CategoryAgent), string(api.CategorySystem),
		}},
		{"every metric", "server.md", "Monitoring", metrics(t)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, _ := readGuide(t, c.guide)
			section := sectionOf(t, text, c.section)
			if len(c.want) == 0 {
				t.Fatal("nothing is wanted")
			}
			for _, name := range c.want {
				if !strings.Contains(section, "`"+name+"`") {
					t.Errorf("the section %q has no `%s`", c.section, name)
				}
			}
		})
	}
}

func enumOf(t *testing.T, schema, field string) []string {
	t.Helper()
	var s struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(schemas.Get(schema), &s); err != nil {
		t.Fatal(err)
	}
	return s.Properties[field].Enum
}

// metrics lists the names of the server's own metrics, also of those without a value.
func metrics(t *testing.T) []string {
	t.Helper()
	containers := container.New(enginetest.NewFake(nil), container.Options{})
	service, err := orchestrator.NewService(orchestrator.Options{
		Home: t.TempDir(), Kinds: run.Kinds{"capsule": containers},
		Features: []feature.Feature{models.New(models.Models{}), upstreams.New(nil), egresses.New(egress.New(egress.Options{})), pushes.NewFeature(pushes.Options{}), schedules.New(nil), workers.New(workers.Options{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	}()
	registry, ok := service.Metrics().(prometheus.Collector)
	if !ok {
		t.Fatal("the metrics can't be described")
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	var names []string
	for desc := range descs {
		if m := regexp.MustCompile(`fqName: "(aod_\w+)"`).FindStringSubmatch(desc.String()); m != nil {
			names = append(names, m[1])
		}
	}
	return append(names, metricsOfAPI(t, service)...)
}

// metricsOfAPI are those that the API has beside the service's, once somebody has asked for something.
func metricsOfAPI(t *testing.T, service *orchestrator.Service) (names []string) {
	t.Helper()
	tools := mcp.NewViews(nil, access.ViewOf, mcp.Options{})
	face, err := httpapi.New(service, httpapi.Options{NoAuth: true, Collectors: tools.Collectors()})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		answer := httptest.NewRecorder()
		face.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (aod_\w+) `).FindAllStringSubmatch(answer.Body.String(), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// Words with an underscore are names: each has to be one of something that there is.
func TestTheNamesInTheServersGuidesExist(t *testing.T) {
	known := map[string]bool{}
	for _, list := range [][]string{metrics(t), recordFields(), outcomes, settings(t), namesIn(t, "problem", "page", "pool", "stats", "event", "unit", "submission", "agent")} {
		for _, name := range list {
			known[name] = true
		}
	}
	for _, kind := range kinds() {
		known[kind.String()] = true
	}
	for _, name := range []string{"method_not_allowed", "range_not_satisfiable", "queue_timeout", "retry_in_ms", "max_output", "older_than", "max_bytes", "dry_run", "session_id", "go_version", "file_paths", "disk_full", "closed_at", "made_by", "last_used_at", "grace_until", "may_answer", "held_by", "id_token", "failing_since", "given_up", "tried_at", "own_only"} {
		known[name] = true // of wires that have no schema of their own; the tours show most of them
	}
	for _, name := range []string{"server.md", apiGuide} {
		for _, span := range spansOf(t, name) {
			if regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`).MatchString(span) && !known[span] {
				t.Errorf("%s: nothing is called %s", name, span)
			}
			if flag := regexp.MustCompile(`^--([a-z-]+)$`).FindStringSubmatch(span); flag != nil && !isFlag(t, flag[1]) {
				t.Errorf("%s: nothing has the flag %s", name, span)
			}
		}
	}
}

func settings(t *testing.T) []string { return namesIn(t, "config") }

// isFlag says of those flags that are named without a command whether they exist.
func isFlag(t *testing.T, name string) bool {
	others := []string{"server", "token-file", "ca", "pin", "detach"}
	return slices.Contains(others, name) || slices.Contains(settings(t), strings.ReplaceAll(name, "-", "_"))
}

// namesIn lists the properties that schemas name, however deep.
func namesIn(t *testing.T, names ...string) []string {
	t.Helper()
	var found []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			properties, _ := v["properties"].(map[string]any)
			found = slices.AppendSeq(found, maps.Keys(properties))
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	for _, name := range names {
		var schema any
		if err := json.Unmarshal(schemas.Get(name), &schema); err != nil {
			t.Fatal(err)
		}
		walk(schema)
	}
	return found
}
