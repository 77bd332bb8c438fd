package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
)

// taskClient is the client of the protocol's SDK, of one unit of a server.
type taskClient struct {
	*a2aclient.Client
	t   *testing.T
	ctx context.Context //nolint:containedctx // it has the token
	web *http.Client
}

func (s *server) taskClient(unit string, form peertest.Form) *taskClient {
	s.t.Helper()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: mostStreams}}
	s.t.Cleanup(web.CloseIdleConnections)
	at := []*sdk.AgentInterface{{URL: s.url() + "/a2a/" + unit, ProtocolBinding: form.Binding, ProtocolVersion: form.Version}}
	made, err := a2aclient.NewFromEndpoints(s.t.Context(), at, a2aclient.WithDefaultsDisabled(),
		a2aclient.WithJSONRPCTransport(web), a2aclient.WithRESTTransport(web),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: web}), a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: web}))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*patienceTime)
	s.t.Cleanup(cancel)
	return &taskClient{made, s.t, a2aclient.AttachServiceParams(ctx, a2aclient.ServiceParams{"Authorization": {"Bearer " + s.token}}), web}
}

// messageOf is a message to an agent.
func messageOf(parts ...*sdk.Part) *sdk.Message { return sdk.NewMessage(sdk.MessageRoleUser, parts...) }

// messageTo is a message to a task, with a text.
func messageTo(id sdk.TaskID, text string) *sdk.Message {
	m := messageOf(sdk.NewTextPart(text))
	m.TaskID = id
	return m
}

// send sends a message and returns its task: at its end or when it asks something, or at once.
func (c *taskClient) send(m *sdk.Message, immediately bool) (*sdk.Task, error) {
	sent, err := c.SendMessage(c.ctx, &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: immediately}})
	if err != nil {
		return nil, err
	}
	task, ok := sent.(*sdk.Task)
	if !ok {
		return nil, fmt.Errorf("it is answered with %T", sent)
	}
	return task, nil
}

func (c *taskClient) mustSend(m *sdk.Message, immediately bool) *sdk.Task {
	c.t.Helper()
	task, err := c.send(m, immediately)
	if err != nil {
		c.t.Fatal(err)
	}
	return task
}

// tellingOf is what an event tells, in one line that is the same in every binding and version.
func tellingOf(event sdk.Event) string {
	switch e := event.(type) {
	case *sdk.Task:
		return "task " + statusLine(e.Status)
	case *sdk.TaskStatusUpdateEvent:
		return statusLine(e.Status)
	case *sdk.TaskArtifactUpdateEvent:
		return fmt.Sprintf("%s append=%t last=%t", artifactLine(e.Artifact), e.Append, e.LastChunk)
	}
	return fmt.Sprintf("%T", event)
}

func statusLine(s sdk.TaskStatus) string {
	line := string(s.State)
	if s.Timestamp != nil {
		line += " " + s.Timestamp.UTC().Format("15:04:05.000")
	}
	if m := s.Message; m != nil {
		line += " " + m.ID + partsLine(m.Parts)
	}
	return line
}

func artifactLine(a *sdk.Artifact) string { return string(a.ID) + partsLine(a.Parts) }

func partsLine(parts sdk.ContentParts) string {
	var line strings.Builder
	for _, p := range parts {
		switch content := p.Content.(type) {
		case sdk.Text:
			fmt.Fprintf(&line, " text:%s", content)
		case sdk.Raw:
			fmt.Fprintf(&line, " raw:%s:%d", p.Filename, len(content))
		case sdk.URL:
			fmt.Fprintf(&line, " url:%s:%s", p.Filename, content)
		case sdk.Data:
			raw, _ := json.Marshal(content.Value) // it came as JSON
			fmt.Fprintf(&line, " data:%s", raw)
		}
	}
	return line.String()
}

// folded is a task as the events of a stream make it.
func folded(events []sdk.Event) (task sdk.Task) {
	for _, event := range events {
		switch e := event.(type) {
		case *sdk.Task:
			task = *e
			task.Artifacts = slices.Clone(e.Artifacts)
		case *sdk.TaskStatusUpdateEvent:
			task.Status = e.Status
		case *sdk.TaskArtifactUpdateEvent:
			task.Artifacts = added(task.Artifacts, e)
		}
	}
	return task
}

// added are artifacts with what an event tells of one.
func added(all []*sdk.Artifact, e *sdk.TaskArtifactUpdateEvent) []*sdk.Artifact {
	at := slices.IndexFunc(all, func(a *sdk.Artifact) bool { return a.ID == e.Artifact.ID })
	if at < 0 {
		return append(all, e.Artifact)
	}
	whole := *e.Artifact
	if e.Append {
		whole.Parts = slices.Concat(all[at].Parts, e.Artifact.Parts)
	}
	all[at] = &whole
	return all
}

// givenBy are the status of a task and what it gave, a line each.
func givenBy(task *sdk.Task) []string {
	lines := []string{statusLine(task.Status)}
	for _, a := range task.Artifacts {
		lines = append(lines, artifactLine(a))
	}
	return lines
}
