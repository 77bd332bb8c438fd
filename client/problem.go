package client

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/fault"
)

// maxProblem bounds the document of an error, in bytes.
const maxProblem = 1 << 20

// problem is an error as it travels (RFC 9457, with our members).
type problem struct {
	Title    string          `json:"title"`
	Detail   string          `json:"detail"`
	Code     string          `json:"code"`
	Hint     string          `json:"hint"`
	Findings []fault.Finding `json:"findings"`
	Run      string          `json:"run"`
}

// refusal turns an answer that is no success into the fault that the server made.
func (c *Client) refusal(response *http.Response) error {
	if response.StatusCode/100 == 3 {
		return c.redirected(response)
	}
	told, ok := readProblem(response)
	if !ok {
		return c.mute(response)
	}
	if told.Detail == "" {
		told.Detail = told.Title
	}
	refused := &fault.Error{Kind: kindOf(told.Code), Msg: told.Detail, Hint: told.Hint, Findings: told.Findings}
	if checkID(told.Run) == nil {
		refused.Err = &runError{told.Run}
	}
	return refused
}

// kindOf returns the kind of fault that a code stands for.
func kindOf(code string) fault.Kind {
	kind, known := fault.KindNamed(code)
	switch {
	case known:
		return kind
	case code == "unit_failed":
		return fault.Capsule
	}
	return fault.Unsupported // a server newer than us
}

func readProblem(response *http.Response) (problem, bool) {
	var told problem
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" {
		return told, false
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil || json.Unmarshal(raw, &told) != nil {
		return told, false
	}
	return told, told.Code != "" && told.Detail+told.Title != ""
}

// mute is the fault for an error without a word, as proxies give them.
func (c *Client) mute(response *http.Response) error {
	f := fault.New(fault.Unavailable, "%s answers %d without a reason", c.base, response.StatusCode).
		WithHint("is it a server of AOD, or a proxy before one?")
	if response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusGatewayTimeout {
		f.Err = &lostError{errors.New("a proxy has lost its server")}
	}
	return f
}

// redirected refuses to go elsewhere: the token is for this server.
func (c *Client) redirected(response *http.Response) error {
	f := fault.New(fault.Unsupported, "%s sends us elsewhere, which is not followed", c.base)
	if target, err := url.Parse(response.Header.Get("Location")); err == nil && target.Host != "" {
		return f.WithHint("if you trust %s://%s, name that server itself", target.Scheme, target.Host)
	}
	return f.WithHint("name the server by the address that it answers at")
}
