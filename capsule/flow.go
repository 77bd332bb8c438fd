package capsule

import (
	"cmp"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// The times of a flow: people may be asked in it.
const (
	flowTimeout    = time.Hour
	MaxFlowTimeout = 720 * time.Hour // of limits.timeout
)

// notInFlow are the keys of agent.yaml that have no meaning for a flow, with what to do
// instead.
var notInFlow = map[string]string{
	"/model": "", "/models": "", "/temperature": "", "/max_tokens": "", "/loop": "", "/transcript": "",
	"/model_cache": "",
	"/network":     "", "/read_only": "", "/runtime": "", "/egress": "", "/upstreams": "", "/warm": "", "/reuse": "",
	"/secrets":       "",
	"/limits/memory": "", "/limits/cpus": "", "/limits/pids": "", "/limits/log": "",
	"/retries": "leave it out: nodes have `retry` in " + flow.FileName,
}

// readFlow reads what belongs to a unit of KindFlow beside its agent.yaml.
func readFlow(d *Directory, c *Capsule) {
	d.Refuse("a flow has none", "remove it: nothing is built here, and to name a unit in "+flow.FileName+
		" grants the call",
		"Dockerfile", "Dockerfile.dockerignore", ".dockerignore", toolsFile, mcpFile, "run.py")
	c.Contract = d.Contract()
	c.Agent.Limits.Timeout = cmp.Or(c.Agent.Limits.Timeout, flowTimeout)
	raw, ok := d.ReadFile(flow.FileName, "add one: nodes: {hello: {run: hello}} is a flow of one node")
	if !ok {
		return
	}
	var findings []fault.Finding
	c.Flow, findings = flow.Parse(raw)
	d.findings = append(d.findings, findings...)
}

// FlowText returns the text of the flow in a directory. The error says why it can't be read.
func FlowText(dir string) ([]byte, error) {
	src, err := openSource(dir)
	if err != nil {
		return nil, err
	}
	defer src.close()
	return src.read(flow.FileName, maxFileBytes)
}

// GraphOf returns the graph of what a kind has read; nil of a unit that isn't a flow.
func GraphOf(definition any) *flow.Flow {
	if c, ok := definition.(*Capsule); ok {
		return c.Flow
	}
	return nil
}
