package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/schemas"
)

var fences = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the guide's fenced blocks in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	raw, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range fences.FindAllStringSubmatch(string(raw), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", guideFile, language)
	}
	return found
}

func TestTheGuidesFilesLoad(t *testing.T) {
	for _, text := range blocks(t, "yaml") {
		mustLoad(t, given{file: text})
		if problems := againstSchema(t, text); len(problems) > 0 {
			t.Errorf("the schema refuses it: %v", problems)
		}
	}
}

func TestTheGuideShowsWhatAODPrints(t *testing.T) {
	yamls, shown := blocks(t, "yaml"), blocks(t, "console")[0]
	example := yamls[slices.IndexFunc(yamls, func(text string) bool { return strings.HasPrefix(text, "listen:") })]
	c := mustLoad(t, given{file: example, env: map[string]string{"AOD_QUEUE": "10"}, args: []string{"--log-format", "text"}})
	var printed strings.Builder
	for _, v := range c.Values() {
		printed.WriteString(v.Key + " " + v.Value + " " + v.Source + "\n")
	}
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n")[2:] {
		fields := strings.Join(strings.Fields(line), " ")
		if fields != "..." && !strings.Contains(printed.String(), fields+"\n") {
			t.Errorf("%s is not in\n%s", fields, printed.String())
		}
	}
}

// What an editor accepts by the schema and what Load accepts must not drift apart in
// what a schema can say.
func TestTheSchemaAgreesWithLoad(t *testing.T) {
	cases := []struct {
		text string
		good bool
	}{
		{"queue: 5", true},
		{"queue: 0", false},
		{"queue: '5'", false},
		{"queue: 1.5", false},
		{"retention_age: 0", true},
		{"retention_age: 5", false},
		{"retention_age: 5d", false},
		{"queue_wait: 0", false},
		{"upload_limit: 5000000", true},
		{"upload_limit: 5.5", false},
		{"units: [a]", true},
		{"units: a", false},
		{"units: ['']", false},
		{"units:", false},
		{"log_level: loud", false},
		{"no_auth: yes", false},
		{"no_auth: true", true},
		{"tls: self", true},
		{"tls: off", true},
		{"tls: true", false},
		{"tls: files", false},
		{"tls: {cert: c.pem, key: k.pem}", true},
		{"tls: {cert: c.pem}", false},
		{"tls: {}", false},
		{"tls: {cert: c.pem, key: ''}", false},
		{"tls: {cert: c.pem, key: k.pem, ca: x}", false},
		{"lisen: x", false},
		{"unit: {a: {access: read-write}}", true},
		{"unit: {a: {model_path: m.gguf, max_stdin: 5MiB}}", true},
		{"unit: {a: {model_path: ''}}", false},
		{"unit: {a: {max_stdin: 0}}", false},
		{"unit: {A: {}}", false},
		{"unit: {a: {env: {A: x, B_1: 2, C: 1.50, D: true, E: ''}}}", true},
		{"unit: {a: {env: {1A: x}}}", false},
		{"unit: {a: {env: {AOD_URL: x}}}", false},
		{"unit: {a: {env: {A: }}}", false},
		{"unit: {a: {env: {A: [x]}}}", false},
		{"unit: {a: {env: [A]}}", false},
		{"unit: {a: {network: bridge, limits: {memory: 2GiB, cpus: 0.5, pids: 2, output: 1, log: 1MiB}}}", true},
		{"unit: {a: {network: host}}", false},
		{"unit: {a: {limits: {cpus: 0}}}", false},
		{"unit: {a: {limits: {cpus: '1'}}}", false},
		{"unit: {a: {limits: {pids: 1}}}", false},
		{"unit: {a: {limits: {timeout: 1m}}}", false},
		{"unit: {a: {policy: {networks: [none, bridge], retries: 0, runtimes: [runsc], read_only: false, warm: 0, reuse: 1}}}", true},
		{"unit: {a: {policy: {uploads: {}}}}", false},
		{"policy: {networks: [], memory: 1GiB, cpus: 1.5, pids: 100, output: 1MiB, timeout: 1m, runtimes: [], runtime: runsc, uploads: {networks: [bridge]}}", true},
		{"policy: {networks: [host]}", false},
		{"policy: {runtime: ''}", false},
		{"policy: {reuse: 0}", false},
		{"policy: {uploads: {uploads: {}}}", false},
		{"agents: {require: [user_id, mode], modes: [DEMO], risk_tiers: ['A tier'], task_types: {LIT_RETRIEVAL: literature}}", true},
		{"agents: {task_types: {}}", true},
		{"a2a: {enabled: false, root: hello, auth: api_key, auth_header: X-Key, rate: 60, public_url: 'https://a.example', cards: private, grpc: '127.0.0.1:7071'}", true},
		{"a2a: {auth: basic}", false},
		{"unit: {a: {a2a: {enabled: true, private: true, tokens: [ci, p.1_x], rate: 60, burst: 10}}}", true},
		{"unit: {a: {a2a: {}}}", true},
		{"unit: {a: {a2a: {rate: -2}}}", false},
		{"unit: {a: {a2a: {tokens: ci}}}", false},
		{"unit: {a: {a2a: {tokens: ['C I']}}}", false},
		{"unit: {a: {a2a: {root: a}}}", false},
		{"a2a: {rate: -1}", false},
		{"a2a: {cards: hidden}", false},
		{"a2a: {token: x}", false},
		{"agents: {task_types: {A: B}}", false},
		{"agents: {task_types: {'': b}}", false},
		{"agents: {task_types: {a: 7}}", false},
		{"agents: {task_types: [a]}", false},
		{"agents: {require: [request_id]}", false},
		{"agents: {modes: ['']}", false},
		{"agents: {modes: DEMO}", false},
		{"agents: {tiers: []}", false},
		{"unit: {a: {require: [user_id], modes: [DEMO], risk_tiers: [X]}}", true},
		{"unit: {a: {require: [tool]}}", false},
		{"unit: {a: {task_types: {}}}", false},
		{"unit: {a: {colour: 1}}", false},
		{"providers: {one: {kind: openai, key: k}}\nmodels: {small: {use: [one/a/b], price: {input: 0.25, output: 2}, rpm: 5, tpm: 5, max_output: 5, context: 5, images: true, allow: [files]}}", true},
		{"providers: {one: {kind: openai}}\nmodels: {m: {use: [one/a, one/b], order: cheapest, prices: {one/b: {input: 1, output: 2}}, images: false}}", true},
		{"providers: {one: {kind: openai}}\nmodels: {m: {use: [one/a], order: fastest}}", false},
		{"providers: {one: {kind: openai}}\nmodels: {m: {use: [one/a], prices: {one/a: {input: -1}}}}", false},
		{"providers: {one: {kind: compatible, base_url: 'http://10.0.0.1/v1', plain_http: true, dialects: [chat], concurrency: 3, fields: known, stream_usage: false}}", true},
		{"providers: {one: {kind: script, answers: a.yaml}}", true},
		{"providers: {One: {kind: openai}}", false},
		{"providers: {one: {kind: other}}", false},
		{"providers: {one: {}}", false},
		{"providers: {one: {kind: openai, colour: 1}}", false},
		{"providers: {one: {kind: openai, dialects: [latin]}}", false},
		{"providers: {one: {kind: openai, concurrency: 0}}", false},
		{"models: {small: {}}", false},
		{"models: {small: {use: []}}", false},
		{"models: {small: {use: [one]}}", false},
		{"models: {-small: {use: [one/a]}}", false},
		{"providers: {one: {kind: openai}}\nmodels: {small: {use: [one/a], price: {input: -1}}}", false},
		{"providers: {one: {kind: openai}}\nmodels: {small: {use: [one/a], price: {tea: 1}}}", false},
		{"providers: {one: {kind: openai}}\nmodels: {small: {use: [one/a], allow: [A B]}}", false},
	}
	for _, c := range cases {
		_, err := load(t, given{file: c.text})
		if got := err == nil; got != c.good {
			t.Errorf("%s: Load says %v", c.text, err)
		}
		if problems := againstSchema(t, c.text); (len(problems) == 0) != c.good {
			t.Errorf("%s: the schema says %v", c.text, problems)
		}
	}
}

func againstSchema(t *testing.T, text string) []gojsonschema.ResultError {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schemas.Get("config")), gojsonschema.NewGoLoader(document))
	if err != nil {
		t.Fatal(err)
	}
	return result.Errors()
}
