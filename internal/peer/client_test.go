package peer

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// seen notes the headers of the last request, and answers each.
type seen struct{ header http.Header }

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.header = r.Header
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

func TestTheTokenGoesToOneOrigin(t *testing.T) {
	for _, c := range []struct{ header, in, want string }{
		{"", "Authorization", "Bearer s3cret"},
		{"X-Api-Key", "X-Api-Key", "s3cret"},
	} {
		at := &seen{}
		client, err := New(Options{URL: "https://agent.example.com/base", Token: "s3cret", TokenHeader: c.header, Transport: at})
		if err != nil {
			t.Fatal(err)
		}
		for address, goes := range map[string]bool{
			"https://agent.example.com/x": true, "https://AGENT.example.com:443": true, "https://agent.example.com:8443": false,
			"http://agent.example.com/x": false, "https://example.com/x": false, "https://agent.example.com.evil.org": false,
		} {
			at.header = nil
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.HTTP.Do(req)
			if goes && (err != nil || at.header.Get(c.in) != c.want) || !goes && (!errors.Is(err, ErrForeign) || at.header != nil) {
				t.Errorf("%s: %v, %v", address, err, at.header)
			}
			if req.Header.Get(c.in) != "" {
				t.Errorf("the caller's request got the token")
			}
		}
	}
}

func TestARedirectStaysAtTheOrigin(t *testing.T) {
	request := func(method, address string) *http.Request {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{Method: method, URL: at}
	}
	first := request("POST", "https://a.example/x")
	for _, c := range []struct {
		next    *http.Request
		already int
		follows bool
	}{
		{request("POST", "https://a.example/y"), 1, true},
		{request("POST", "https://a.example/y"), 3, true},
		{request("POST", "https://a.example/y"), 4, false},
		{request("GET", "https://a.example/y"), 1, false},
		{request("POST", "https://b.example/y"), 1, false},
		{request("POST", "http://a.example/y"), 1, false},
	} {
		via := make([]*http.Request, c.already)
		via[0] = first
		if err := SameOriginOnly(c.next, via); (err == nil) != c.follows {
			t.Errorf("%s %s after %d: %v", c.next.Method, c.next.URL, c.already, err)
		}
	}
}

func TestAProtocolsOwnStatusesGoFirst(t *testing.T) {
	kinds := Kinds{Own: map[int]fault.Kind{404: fault.Conflict, 503: fault.Busy}, Failed: fault.Internal}
	for status, want := range map[int]fault.Kind{
		404: fault.Conflict, 503: fault.Busy, 401: fault.Unauthorized, 403: fault.Forbidden, 429: fault.Busy,
		500: fault.Internal, 502: fault.Internal, 501: fault.Unsupported, 302: fault.Unsupported, 418: fault.Unsupported,
	} {
		if got := kinds.Of(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}
