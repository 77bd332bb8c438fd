package httpapi

import (
	"strings"
	"testing"
)

func TestAServerWithoutThePageSaysSo(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.NoPage = true })
	for _, asked := range []string{"GET /ui", "GET /ui/", "GET /ui/runs?state=failed", "POST /ui/login", "POST /v1/signin"} {
		method, path, _ := strings.Cut(asked, " ")
		a := s.do(method, path, "").wants(t, 404)
		if !strings.Contains(a.body, "this server has no page") || !strings.Contains(a.body, "no_ui") {
			t.Errorf("%s: %s", asked, a.body)
		}
	}
}
