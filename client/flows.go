package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Flows tells of runs of flows.
type Flows struct{ conn *conn }

// Steps lists the steps of a flow's run in the order of their last changes. It requests pages
// of them as they are wanted. After an error it yields no more.
func (c Flows) Steps(ctx context.Context, id string) iter.Seq2[api.Step, error] {
	return numbered(ctx, c.conn, toRun(http.MethodGet, id, "steps"), 1000,
		func(p api.StepPage) ([]api.Step, *int64) { return p.Steps, p.Next })
}

// Graph returns the graph of a flow's run as JSON, in the form of flow.yaml. A Conflict fault
// says that the run is none of a flow.
func (c Flows) Graph(ctx context.Context, id string) (json.RawMessage, error) {
	return got[json.RawMessage](ctx, c.conn, toRun(http.MethodGet, id, "flow"))
}

// OfUnit returns a flow as it was written, with its graph and what is wrong with it: of a version, or of its newest
// state where that is "". A Conflict fault says that the unit isn't a flow.
func (c Flows) OfUnit(ctx context.Context, unit, version string) (api.UnitFlow, error) {
	r := toUnit(http.MethodGet, unit, "flow")
	if version != "" {
		r.query = url.Values{"version": {version}}
	}
	return got[api.UnitFlow](ctx, c.conn, r)
}

// State returns the state of a flow's run, as the nodes that have ended made it. A Conflict
// fault says that the run is none of a flow.
func (c Flows) State(ctx context.Context, id string) (api.FlowState, error) {
	return got[api.FlowState](ctx, c.conn, toRun(http.MethodGet, id, "state"))
}

// File is Files.Get for a file of a flow's state.
func (c Flows) File(ctx context.Context, id string, file api.File, w io.Writer) error {
	return c.conn.file(ctx, id, file, w, "state", "files")
}

// Download is Files.Download for files of a flow's state.
func (c Flows) Download(ctx context.Context, id string, files []api.File, dir string) ([]api.File, error) {
	return fetchAll(ctx, id, files, dir, c.File)
}

// Questions lists and answers what runs ask.
type Questions struct{ conn *conn }

// List lists the open questions of a run, or of all where run is "", the oldest first. It
// requests pages of them as they are wanted. After an error it yields no more.
func (c Questions) List(ctx context.Context, run string) iter.Seq2[api.Question, error] {
	r := to(http.MethodGet, "questions")
	if run != "" {
		r.query = url.Values{"run": {run}}
	}
	return numbered(ctx, c.conn, r, 1000,
		func(p api.QuestionPage) ([]api.Question, *int64) { return p.Questions, p.Next })
}

// Mine lists the open questions that name the client's token, or a team of it, as who alone answers them.
func (c Questions) Mine(ctx context.Context) iter.Seq2[api.Question, error] {
	r := to(http.MethodGet, "questions")
	r.query = url.Values{"mine": {"true"}}
	return numbered(ctx, c.conn, r, 1000,
		func(p api.QuestionPage) ([]api.Question, *int64) { return p.Questions, p.Next })
}

// Get returns a question, also one that is answered or closed.
func (c Questions) Get(ctx context.Context, question string) (api.Question, error) {
	r := to(http.MethodGet, "questions", question)
	r.err = checkID(question)
	return got[api.Question](ctx, c.conn, r)
}

// File is Files.Get for a file that a question shows, of its Files.
func (c Questions) File(ctx context.Context, question string, file api.File, w io.Writer) error {
	if err := api.CheckFileName(file.Name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server names a file of the question in a way that is refused")
	}
	from := to(http.MethodGet, append([]string{"questions", question}, below(file, "files")...)...)
	from.err = checkID(question)
	return c.conn.download(ctx, from, file, w)
}

// All lists the questions of a run, also those that are answered or closed, oldest first.
func (c Questions) All(ctx context.Context, run string) iter.Seq2[api.Question, error] {
	r := to(http.MethodGet, "questions")
	r.query = url.Values{"run": {run}, "all": {"true"}}
	return numbered(ctx, c.conn, r, 1000,
		func(p api.QuestionPage) ([]api.Question, *int64) { return p.Questions, p.Next })
}

// Answer answers a question. The first answer counts: the same again is fine, another one is a
// Conflict fault, as is an answer to a question that is open no more.
func (c Questions) Answer(ctx context.Context, question string, answer api.Answer) error {
	r := to(http.MethodPost, "questions", question)
	r.err = checkID(question)
	_, err := c.conn.call(ctx, r.with(answer), nil)
	return err
}
