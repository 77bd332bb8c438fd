package capsule

import (
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

// newRemote writes the smallest unit whose agent is elsewhere, with some of its files changed.
func newRemote(t *testing.T, changes map[string]string) string {
	t.Helper()
	files := map[string]string{
		"agent.yaml":  "name: word-stats\nkind: remote\nremote: {url: agents.example.com}\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	}
	maps.Copy(files, changes)
	maps.DeleteFunc(files, func(_, text string) bool { return text == missing })
	return newDirectory(t, files)
}

func somePEM(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestLoadReadsAnAgentElsewhere(t *testing.T) {
	ca := somePEM(t)
	c := loaded(t, newRemote(t, map[string]string{"certs/ca.pem": ca, "agent.yaml": `
name: word-stats
kind: remote
version: "1"
description: Counts.
remote:
  url: https://agents.example.com/x
  task_type: WORDS:v1
  mode: LIVE
  risk_tier: low
  domain_id: d
  stream: true
  auth: {header: x-api-key, secret: words-token}
  ca_file: certs/ca.pem
limits: {timeout: 2m}
retries: 3
concurrency: 2
`}))
	want := &Remote{
		URL: "https://agents.example.com/x", Stream: true, CAFile: "certs/ca.pem", CA: []byte(ca),
		Auth: &Auth{Header: "X-Api-Key", Secret: "words-token"}, TaskType: "WORDS:v1", Mode: "LIVE", RiskTier: "low", DomainID: "d",
	}
	if diff := cmp.Diff(want, c.Remote); diff != "" {
		t.Error(diff)
	}
	if c.Kind != KindRemote || c.Contract == nil || c.Agent.Limits.Timeout != 2*time.Minute || *c.Agent.Retries != 3 || len(c.Warnings) > 0 {
		t.Errorf("%+v", c)
	}
	if raw, err := c.Schema(); err != nil || !strings.Contains(string(raw), `"output"`) {
		t.Errorf("%s %v", raw, err)
	}
}

func TestAnAgentElsewhereHasDefaults(t *testing.T) {
	c := loaded(t, newRemote(t, nil))
	if diff := cmp.Diff(&Remote{URL: "agents.example.com", TaskType: "WORD_STATS"}, c.Remote); diff != "" {
		t.Error(diff)
	}
	for yaml, want := range map[string]Auth{
		"{secret: s}":                        {Header: "Authorization", Scheme: "Bearer", Secret: "s"},
		"{secret: s, header: authorization}": {Header: "Authorization", Scheme: "Bearer", Secret: "s"},
		`{secret: s, scheme: ""}`:            {Header: "Authorization", Secret: "s"},
		"{secret: s, scheme: Token}":         {Header: "Authorization", Scheme: "Token", Secret: "s"},
		"{secret: s, header: X-Key}":         {Header: "X-Key", Secret: "s"},
	} {
		c := loaded(t, newRemote(t, map[string]string{"agent.yaml": "name: a\nkind: remote\nremote:\n  url: https://a\n  auth: " + yaml + "\n"}))
		if diff := cmp.Diff(&want, c.Remote.Auth); diff != "" {
			t.Errorf("%s: %s", yaml, diff)
		}
	}
}

func TestLoadRefusesWhatHasNoMeaningElsewhere(t *testing.T) {
	agent := func(lines string) map[string]string {
		return map[string]string{"agent.yaml": "name: a\nkind: remote\n" + lines}
	}
	cases := []struct {
		name    string
		changes map[string]string
		want    string // what is told, as it begins
	}{
		{"no remote", agent(""), "agent.yaml:1: a unit of the kind remote has to say where its agent is"},
		{"an empty remote", agent("remote: {}\n"), `agent.yaml:3: remote: required field "url" is missing`},
		{"a remote that is a text", agent("remote: https://a\n"), "agent.yaml:3: remote: expected object, got string"},
		{"remote in a capsule", map[string]string{"agent.yaml": "name: a\nremote: {url: https://a}\n"}, "agent.yaml:2: remote is for units of the kind remote"},
		{"an unknown key", agent("remote:\n  url: https://a\n  taks_type: X\n"), `agent.yaml:5: the key "taks_type" is not known (did you mean task_type?)`},
		{"plain http to another machine", agent("remote:\n  url: http://10.0.0.1\n"), "agent.yaml:4: remote.url: plain http to 10.0.0.1 would show everybody on the way what is sent (use https, or allow it with remote.plain_http: true)"},
		{"no http at all", agent("remote:\n  url: ftp://a\n"), "agent.yaml:4: remote.url: the agent's address is not one of http or https"},
		{"a password", agent("remote:\n  url: https://u:hunter2@a\n"), "agent.yaml:4: remote.url: the agent's address must not hold a password"},
		{"plain_http with https", agent("remote:\n  url: https://a\n  plain_http: true\n"), "agent.yaml:5: remote.plain_http: it has no meaning with https"},
		{"ca_file with http", map[string]string{"ca.pem": somePEM(t), "agent.yaml": "name: a\nkind: remote\nremote:\n  url: http://127.0.0.1\n  ca_file: ca.pem\n"}, "agent.yaml:5: remote.ca_file: it has no meaning with http"},
		{"ca_file outside", agent("remote:\n  url: https://a\n  ca_file: ../ca.pem\n"), `agent.yaml:5: remote.ca_file: "../ca.pem" is not a file of the directory`},
		{"ca_file that is missing", agent("remote: {url: https://a, ca_file: ca.pem}\n"), "ca.pem: it is missing, and remote.ca_file names it"},
		{"a task type with a space", agent("remote:\n  url: https://a\n  task_type: a b\n"), "agent.yaml:5: remote.task_type: does not match the pattern"},
		{"a header that a request has", agent("remote:\n  url: https://a\n  auth: {header: content-type, secret: s}\n"), "agent.yaml:5: remote.auth.header: Content-Type is a header that each request has for itself"},
		{"auth without a secret", agent("remote:\n  url: https://a\n  auth: {}\n"), `agent.yaml:5: remote.auth: required field "secret" is missing`},
		{"a secret that is a path", agent("remote:\n  url: https://a\n  auth: {secret: ../x}\n"), "agent.yaml:5: remote.auth.secret: does not match the pattern"},
		{"memory", agent("remote: {url: https://a}\nlimits:\n  memory: 1GiB\n"), "agent.yaml:5: limits.memory: it has no meaning for an agent elsewhere"},
		{"a network", agent("remote: {url: https://a}\nnetwork: bridge\n"), "agent.yaml:4: network: it has no meaning for an agent elsewhere"},
		{"secrets", agent("remote: {url: https://a}\nsecrets: {X: x}\n"), "agent.yaml:4: secrets: it has no meaning for an agent elsewhere (name the secret that the agent wants in remote.auth.secret)"},
		{"recursion", agent("remote: {url: https://a}\nrecursion: 1\n"), "agent.yaml:4: recursion: it has no meaning"},
		{"a Dockerfile", map[string]string{"Dockerfile": "FROM x\n"}, "Dockerfile: an agent elsewhere has none"},
		{"tools.yaml", map[string]string{"tools.yaml": "[]\n"}, "tools.yaml: an agent elsewhere has none"},
		{"no schema.json", map[string]string{"schema.json": missing}, "schema.json: it is missing"},
		{
			"a file in the contract",
			map[string]string{"schema.json": `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"f": {"type": "string", "format": "file_path"}}}}`},
			"schema.json#/output/properties/f: it is a file, and the agent HTTP contract carries none",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			base := newRemote(t, c.changes)
			if c.name == "remote in a capsule" {
				base = newCapsule(t, c.changes)
			}
			_, err := Load(base)
			if got := told(err); !fault.Is(err, fault.Capsule) || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 || strings.Contains(got, "hunter2") {
				t.Errorf("%v\n%swant %s", err, got, c.want)
			}
		})
	}
}

func TestACertificateHasToBeOne(t *testing.T) {
	for _, text := range []string{"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := Load(newRemote(t, map[string]string{"ca.pem": text, "agent.yaml": "kind: remote\nname: a\nremote: {url: https://a, ca_file: ca.pem}\n"}))
		if got := told(err); !strings.HasPrefix(got, "ca.pem: it holds no certificate in PEM") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestASecretOverPlainHTTPIsAWarning(t *testing.T) {
	c := loaded(t, newRemote(t, map[string]string{"agent.yaml": "name: a\nkind: remote\nremote:\n  url: http://10.0.0.1\n  plain_http: true\n  auth: {secret: s}\n"}))
	if len(c.Warnings) != 1 || c.Warnings[0].Line != 6 || !strings.Contains(c.Warnings[0].Message, "plain http") {
		t.Errorf("%v", c.Warnings)
	}
}
