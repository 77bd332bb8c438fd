package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
)

// Client is a client of ours that asks one question after the other.
type Client struct {
	session *Session
	answers chan message
	asked   int
}

// NewClient returns a client and its session, which somebody connects with a server.
func NewClient(opts Options) (*Client, *Session) {
	c := &Client{answers: make(chan message, 1)}
	c.session = newSession(opts, c.take)
	return c, c.session
}

// take takes a message of the server's. Whatever the server asks, it gets a no.
func (c *Client) take(m message) error {
	switch {
	case m.isResponse():
		c.answers <- m
	case m.isRequest():
		answer := refusal(m.id, failure{Code: -32601, Message: "this client answers nothing"}).text
		if m.method == "ping" {
			answer = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.id)
		}
		go func() { _ = c.session.FromClient(context.Background(), answer) }() // it ends with the session
	}
	return nil
}

// Open begins the session.
func (c *Client) Open(ctx context.Context) error {
	_, err := c.ask(ctx, methodInitialize, map[string]any{
		"protocolVersion": Revisions[0], "capabilities": map[string]any{},
		"clientInfo": map[string]string{"name": "aod", "version": "1"},
	})
	if err != nil {
		return err
	}
	return c.session.FromClient(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// Tool is what a server says of a tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// Tools returns the server's tools.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	var all []Tool
	params := map[string]any{}
	for len(all) <= maxTools {
		raw, err := c.ask(ctx, methodList, params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []Tool `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fault.Wrap(fault.Capsule, err, "the server's list of tools can't be read")
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" || len(page.Tools) == 0 {
			return all, nil
		}
		params["cursor"] = page.NextCursor
	}
	return nil, fault.New(fault.Capsule, "the server has more than %d tools", maxTools)
}

// Call calls a tool and returns its result.
func (c *Client) Call(ctx context.Context, tool string, arguments any) (json.RawMessage, error) {
	return c.ask(ctx, methodCall, map[string]any{"name": tool, "arguments": arguments})
}

// ask returns the result of a request.
func (c *Client) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c.asked++
	request := encode(map[string]any{"jsonrpc": "2.0", "id": c.asked, "method": method, "params": params})
	if err := c.session.FromClient(ctx, request); err != nil {
		return nil, err
	}
	for {
		select {
		case m := <-c.answers:
			if string(m.id) != strconv.Itoa(c.asked) && string(m.id) != "null" {
				continue // it came too late
			}
			return resultOf(m)
		case <-c.session.Done():
			return nil, c.session.Err()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func resultOf(m message) (json.RawMessage, error) {
	if m.failure == nil {
		return m.result, nil
	}
	var said failure
	_ = json.Unmarshal(m.failure, &said) // then it said nothing
	return nil, fault.New(fault.Capsule, "the server answered with the error %d: %s", said.Code, cut(said.Message))
}
