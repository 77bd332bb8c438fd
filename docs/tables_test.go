package docs_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/schemas"
)

func TestTheTablesAreWhole(t *testing.T) {
	cases := []struct {
		name, section string
		want          []string // each in a code span of the section
	}{
		{"every key of agent.yaml", "agent.yaml", agentKeys(t)},
		{"every default limit", "Inside the sandbox", defaultLimits()},
		{"every outcome", "Errors and exit codes", outcomes},
		{"every field of the record", "The run record", recordFields()},
	}
	text, _ := readGuide(t, guide)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			section := sectionOf(t, text, c.section)
			for _, name := range c.want {
				if !strings.Contains(section, "`"+name+"`") {
					t.Errorf("the section %q has no `%s`", c.section, name)
				}
			}
		})
	}
}

func sectionOf(t *testing.T, text, title string) string {
	t.Helper()
	_, after, found := strings.Cut(text, "# "+title+"\n")
	if !found {
		t.Fatalf("there is no section %q", title)
	}
	section, _, _ := strings.Cut(after, "\n#")
	return section
}

// agentKeys lists the keys of agent.yaml, those of limits with a dot.
func agentKeys(t *testing.T) []string {
	t.Helper()
	var schema struct {
		Properties map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schemas.Agent(), &schema); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key, value := range schema.Properties {
		if key != "limits" {
			keys = append(keys, key)
			continue
		}
		for limit := range value.Properties {
			keys = append(keys, "limits."+limit)
		}
	}
	return keys
}

// defaultLimits writes the limits in force by default as a person does.
func defaultLimits() []string {
	l := runtime.DefaultLimits()
	return []string{
		strings.TrimSuffix(l.Timeout.String(), "0s"), size(l.MemoryBytes), fmt.Sprint(l.CPUs),
		fmt.Sprint(l.PIDs), fmt.Sprint(l.OpenFiles), size(l.TmpBytes), size(l.DiskBytes),
		size(l.OutputBytes), fmt.Sprint(l.OutputFiles), size(l.LogBytes), size(l.ResultBytes),
	}
}

func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for len(units) > 1 && n >= 1024 && n%1024 == 0 {
		n, units = n/1024, units[1:]
	}
	return fmt.Sprint(n) + units[0]
}

var outcomes = []string{
	string(api.Success), string(api.CapsuleError), string(api.ContractViolation),
	string(api.LimitExceeded), string(api.OutOfMemory), string(api.TimedOut),
	string(api.WasCancelled), string(api.StartFailed), string(api.SystemError),
}

func recordFields() []string {
	names := jsonNames(reflect.TypeFor[api.Record]())
	names = append(names, jsonNames(reflect.TypeFor[api.Timings]())...)
	names = append(names, jsonNames(reflect.TypeFor[api.Usage]())...)
	return append(names, jsonNames(reflect.TypeFor[api.File]())...)
}

func jsonNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
