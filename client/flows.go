package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// Steps lists the steps of a flow's run in the order of their last changes. It requests pages
// of them as they are wanted. After an error it yields no more.
func (c *Client) Steps(ctx context.Context, id string) iter.Seq2[api.Step, error] {
	return func(yield func(api.Step, error) bool) {
		if err := checkID(id); err != nil {
			yield(api.Step{}, err)
			return
		}
		for after := int64(0); ; {
			var page api.StepPage
			if _, err := c.call(ctx, pageOf(after, nil, "v1", "runs", id, "steps"), &page); err != nil {
				yield(api.Step{}, err)
				return
			}
			for _, step := range page.Steps {
				if !yield(step, nil) {
					return
				}
			}
			if page.Next == nil || *page.Next <= after {
				return
			}
			after = *page.Next
		}
	}
}

// Flow returns the graph of a flow's run as JSON, in the form of flow.yaml. A Conflict fault
// says that the run is none of a flow.
func (c *Client) Flow(ctx context.Context, id string) (json.RawMessage, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var graph json.RawMessage
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, "flow"}}, &graph)
	return graph, err
}

// pageOf is the request for the part of a list that comes after a number.
func pageOf(after int64, query url.Values, path ...string) request {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", "1000")
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return request{method: http.MethodGet, path: path, query: query}
}

// FlowState returns the state of a flow's run, as the nodes that have ended made it. A Conflict
// fault says that the run is none of a flow.
func (c *Client) FlowState(ctx context.Context, id string) (api.FlowState, error) {
	var state api.FlowState
	if err := checkID(id); err != nil {
		return state, err
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, "state"}}, &state)
	return state, err
}

// FlowStateFile is File for a file of a flow's state.
func (c *Client) FlowStateFile(ctx context.Context, id string, file api.File, w io.Writer) error {
	return c.file(ctx, id, file, w, "state", "files")
}

// DownloadState is Download for files of a flow's state.
func (c *Client) DownloadState(ctx context.Context, id string, files []api.File, dir string) ([]api.File, error) {
	return fetchAll(ctx, id, files, dir, c.FlowStateFile)
}

// Questions lists the open questions of a run, or of all where run is "", the oldest first. It
// requests pages of them as they are wanted. After an error it yields no more.
func (c *Client) Questions(ctx context.Context, run string) iter.Seq2[api.Question, error] {
	return func(yield func(api.Question, error) bool) {
		query := url.Values{}
		if run != "" {
			query.Set("run", run)
		}
		for after := int64(0); ; {
			var page api.QuestionPage
			if _, err := c.call(ctx, pageOf(after, query, "v1", "questions"), &page); err != nil {
				yield(api.Question{}, err)
				return
			}
			for _, question := range page.Questions {
				if !yield(question, nil) {
					return
				}
			}
			if page.Next == nil || *page.Next <= after {
				return
			}
			after = *page.Next
		}
	}
}

// Answer answers a question. The first answer counts: the same again is fine, another one is a
// Conflict fault, as is an answer to a question that is open no more.
func (c *Client) Answer(ctx context.Context, question string, answer api.Answer) error {
	if err := checkID(question); err != nil {
		return err
	}
	body, err := jsonBody(answer)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, request{
		method: http.MethodPost, path: []string{"v1", "questions", question}, body: body,
		header: map[string]string{"Content-Type": "application/json"},
	}, nil)
	return err
}
