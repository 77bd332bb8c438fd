package capsule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadReadsAnAgentOfA2A(t *testing.T) {
	const withFiles = `{"input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}}, "output": {"type": "object"}}`
	c := loaded(t, newRemote(t, map[string]string{"schema.json": withFiles, "agent.yaml": `
name: word-stats
kind: remote
remote: {protocol: a2a, url: "https://agents.example.com/card.json", stream: true, auth: {secret: words-token}}
limits: {timeout: 2m, output: 10MB}
`}))
	want := &Remote{
		Protocol: ProtocolA2A, URL: "https://agents.example.com/card.json", Stream: true,
		Auth: &Auth{Header: "Authorization", Scheme: "Bearer", Secret: "words-token"},
	}
	if diff := cmp.Diff(want, c.Remote); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAnAgentOfA2ACantHave(t *testing.T) {
	for more, want := range map[string]string{
		"remote:\n  protocol: a2a\n  url: a\n  task_type: WORDS\n":         "agent.yaml:6: remote.task_type: the A2A protocol has no such thing",
		"remote:\n  protocol: a2a\n  url: a\n  mode: LIVE\n":               "agent.yaml:6: remote.mode: the A2A protocol has no such thing",
		"remote:\n  protocol: grpc\n  url: a\n":                            "agent.yaml:4: remote.protocol: ",
		"remote:\n  protocol: a2a\n  url: http://10.0.0.1\n":               "agent.yaml:5: remote.url: plain http to 10.0.0.1",
		"remote: {protocol: a2a, url: a}\nlimits:\n  memory: 1GB\n":        "agent.yaml:5: limits.memory: it has no meaning for an agent elsewhere",
		"remote: {protocol: agent-http, url: a}\nlimits:\n  output: 1MB\n": "agent.yaml:5: limits.output: it has no meaning for an agent elsewhere",
	} {
		checkFindings(t, newRemote(t, map[string]string{"agent.yaml": "name: a\nkind: remote\n" + more}), want)
	}
}
