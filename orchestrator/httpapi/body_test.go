package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// unread is a body that nobody shall ask for.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

func TestAnUploadIsRefusedBeforeItIsReceived(t *testing.T) {
	t.Parallel()
	s := newServerFull(t)
	for name, c := range map[string]struct{ method, path, kind string }{
		"files of a run": {http.MethodPost, "/v1/runs", "multipart/form-data; boundary=x"},
		"a unit":         {http.MethodPut, "/v1/units/other", "application/gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(c.method, s.url+c.path, "")
			r.Body, r.ContentLength = http.NoBody, 1<<20
			r.Body = struct {
				unread
				closer
			}{unread{t}, closer{}}
			r.Header.Set("Content-Type", c.kind)
			r.Header.Set("Authorization", "Bearer "+token)
			w := record(s.api.Handler(), r)
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the disk is almost full") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

type closer struct{}

func (closer) Close() error { return nil }

// newServerFull is a server whose disk has less room than must stay free.
func newServerFull(t *testing.T) *server {
	t.Helper()
	s := unstarted(t)
	s.minFreeDisk = 1 << 60
	s.start(Options{Token: token})
	return s
}

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
	t.Parallel()
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
	t.Parallel()
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
