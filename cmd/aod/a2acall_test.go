package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// a2aRefusal is an error of the protocol.
type a2aRefusal struct {
	Code    int
	Message string
}

func (r *a2aRefusal) Error() string { return fmt.Sprintf("refused with %d: %s", r.Code, r.Message) }

// The codes of refusals that are looked for.
const (
	a2aBusy    = -32000
	a2aNotDone = -32004
)

// a2aAnswer is the answer to a message.
type a2aAnswer struct{ Task agentTask }

// a2a calls a method of a unit by JSON-RPC in version 1.0. The error is an *a2aRefusal, or the
// server's answer was not heard as a whole.
func (s *server) a2a(ctx context.Context, unit, method, params string, result any) error {
	response, err := s.a2aPost(ctx, unit, method, params)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return a2aResult(raw, result)
}

func (s *server) a2aPost(ctx context.Context, unit, method, params string) (*http.Response, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url()+"/a2a/"+unit, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("A2A-Version", "1.0")
	return http.DefaultClient.Do(request)
}

func a2aResult(raw []byte, result any) error {
	var answer struct {
		Result json.RawMessage
		Error  *a2aRefusal
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return json.Unmarshal(answer.Result, result)
}

// a2aEvent is an event of a stream.
type a2aEvent struct {
	Task         *agentTask
	StatusUpdate *agentTask // with its id below another name, which isn't read
}

// state is the state of which an event tells; "": of none.
func (e a2aEvent) state() string {
	switch {
	case e.Task != nil:
		return e.Task.Status.State
	case e.StatusUpdate != nil:
		return e.StatusUpdate.Status.State
	}
	return ""
}

// a2aStream calls a method that streams, and hands over each event. It returns when the stream has
// ended, or has broken off.
func (s *server) a2aStream(ctx context.Context, unit, method, params string, heard func(a2aEvent)) error {
	response, err := s.a2aPost(ctx, unit, method, params)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData && !strings.HasPrefix(lines.Text(), "{") { // an error isn't a stream
			continue
		}
		var event a2aEvent
		if err := a2aResult([]byte(strings.TrimSpace(data)), &event); err != nil {
			return err
		}
		heard(event)
	}
	return lines.Err()
}
