package httpapi

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// unsent sends the header of a request whose body never comes, and reads the answer.
func (s *server) unsent(method, path, length string, headers ...string) *http.Response {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	must(s.t, conn.SetDeadline(time.Now().Add(20*time.Second))) // less than a body has
	head := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost", length}, headers...)
	_, err = fmt.Fprint(conn, strings.Join(head, "\r\n")+"\r\n\r\n")
	must(s.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("%s %s: no answer: %v", method, path, err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestAStrangersBodyIsNotAwaited(t *testing.T) {
	s := newServer(t, nil)
	for _, length := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
		for _, path := range []string{"/v1/runs", "/v1/au/actor", "/execute", "/agents", "/agents/run/sync", "/v1/prune", "/nowhere"} {
			for _, who := range []string{"Accept: */*", "Authorization: Bearer another"} {
				resp := s.unsent("POST", path, length, "Content-Type: application/json", who)
				if resp.StatusCode != http.StatusUnauthorized || !resp.Close {
					t.Errorf("%s, %s, %s: %d, closes: %v", path, length, who, resp.StatusCode, resp.Close)
				}
			}
		}
	}
}

func TestADeclaredBodyThatIsTooLongIsNotAwaited(t *testing.T) {
	s := newServer(t, func(o *Options) { o.PayloadBytes, o.UploadBytes = 1<<10, 64<<10 })
	bearer := "Authorization: Bearer " + token
	for _, tt := range []struct {
		name, method, path, kind string
		bytes                    int
	}{
		{"a run's JSON", "POST", "/v1/runs", "application/json", 20 << 10},
		{"a run's form", "POST", "/v1/runs", "multipart/form-data; boundary=x", 65 << 10},
		{"an archive", "PUT", "/v1/units/mine", "application/x-tar", 65 << 10},
		{"of the standard", "POST", "/execute", "application/json", 20 << 10},
		{"a reason", "POST", "/v1/runs/01900000-0000-7000-8000-000000000000/cancel", "application/json", 17 << 10},
		{"a prune", "POST", "/v1/prune", "application/json", 17 << 10},
		{"a task", "POST", "/agents/run/sync", "application/json", 20 << 10},
		{"a task that streams", "POST", "/agents/run/stream", "application/json", 20 << 10},
		{"a rerun", "POST", "/v1/runs/01900000-0000-7000-8000-000000000000/rerun", "application/json", 65 << 10},
		{"a GET", "GET", "/v1/runs", "application/json", 65 << 10},
		{"an open address", "GET", "/healthz", "application/json", 65 << 10},
		{"no address", "POST", "/nowhere", "application/json", 65 << 10},
	} {
		resp := s.unsent(tt.method, tt.path, fmt.Sprintf("Content-Length: %d", tt.bytes), "Content-Type: "+tt.kind, bearer)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("%s: %d, closes: %v", tt.name, resp.StatusCode, resp.Close)
		}
	}
}
