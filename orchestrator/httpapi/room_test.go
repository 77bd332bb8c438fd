package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// unread is a body that nobody shall ask for.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

func TestAnUploadIsRefusedBeforeItIsReceived(t *testing.T) {
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
