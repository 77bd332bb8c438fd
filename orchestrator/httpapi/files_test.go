package httpapi

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

func TestModelCallsOfARunComeInPages(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := s.run(`{}`).ID
	var kept strings.Builder
	for n := range 5 {
		fmt.Fprintf(&kept, `{"n":%d,"at":"2026-01-02T03:04:05Z","dialect":"chat","model":"m","request":{}}`+"\n", n+1)
	}
	write(t, filepath.Join(s.home, layout.Runs, id, layout.Transcript), kept.String())
	for query, want := range map[string][]int64{
		"": {1, 2, 3, 4, 5, 0}, "?limit=2": {1, 2, 2}, "?limit=2&after=2": {3, 4, 4}, "?limit=2&after=4": {5, 0},
		"?limit=5": {1, 2, 3, 4, 5, 0}, "?after=3": {4, 5, 0}, "?after=9": {0},
	} {
		page := decode[api.ModelCallPage](t, s.do("GET", "/v1/runs/"+id+"/models"+query, "").wants(t, 200))
		var got []int64
		for _, call := range page.Calls {
			got = append(got, call.N)
		}
		next := int64(0)
		if page.Next != nil {
			next = *page.Next
		}
		if diff := cmp.Diff(want, append(got, next)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	s.do("GET", "/v1/runs/"+id+"/models?limit=1001", "").wants(t, 400)
}

func TestFilesOfARun(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	record := s.run(`{"do":"files"}`)
	base := "/v1/runs/" + record.ID + "/files"
	list := decode[struct{ Files []api.File }](t, s.do("GET", base, "").wants(t, 200))
	if len(list.Files) != 3 {
		t.Fatalf("files %+v", list.Files)
	}
	a := s.do("GET", base+"/report.txt", "").wants(t, 200)
	if a.body != "0123456789" || a.Header.Get("Cache-Control") != "private" || !strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%q %v", a.body, a.Header)
	}
	etag := a.Header.Get("ETag")
	if len(etag) != 66 || a.Header.Get("Content-Disposition") != "attachment; filename=report.txt" {
		t.Errorf("headers %v", a.Header)
	}
	if a := s.do("GET", base+"/report.txt", "", "If-None-Match: "+etag); a.StatusCode != http.StatusNotModified || a.body != "" {
		t.Errorf("%d %q", a.StatusCode, a.body)
	}
	if a := s.do("HEAD", base+"/report.txt", ""); a.StatusCode != http.StatusOK || a.ContentLength != 10 {
		t.Errorf("HEAD: %d, %d bytes", a.StatusCode, a.ContentLength)
	}
	for path, disposition := range map[string]string{
		"/sub/page.html":            "attachment; filename=page.html",
		"/sub%2Fpage.html":          "attachment; filename=page.html",
		"/na%C3%AFve%20%22q%22.csv": "attachment; filename*=utf-8''na%C3%AFve%20%22q%22.csv",
	} {
		a := s.do("GET", base+path, "").wants(t, 200)
		if got := a.Header.Get("Content-Disposition"); got != disposition || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestRangesOfAFile(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	path := "/v1/runs/" + s.run(`{"do":"files"}`).ID + "/files/report.txt"
	if a := s.do("GET", path, "", "Range: bytes=2-4"); a.StatusCode != http.StatusPartialContent || a.body != "234" || a.Header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("%d %q %v", a.StatusCode, a.body, a.Header)
	}
	for _, r := range []string{"bytes=10-", "bytes=99-100", "bytes=5-2", "bytes=a-b"} {
		a := s.do("GET", path, "", "Range: "+r).wants(t, 416)
		if decode[httpwire.Problem](t, a).Code != "range_not_satisfiable" || a.Header.Get("ETag") != "" {
			t.Errorf("%s: %s %v", r, a.body, a.Header)
		}
	}
	if a := s.do("GET", path, "", "Range: bytes="+strings.Repeat("0-1,", 5000)+"0-1"); a.StatusCode != http.StatusOK || len(a.body) != 10 {
		t.Errorf("many ranges: %d, %d bytes", a.StatusCode, len(a.body))
	}
}

func TestNamesThatLeadOutOfARun(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	record := s.run(`{"do":"files"}`)
	base := "/v1/runs/" + record.ID + "/files/"
	for _, name := range []string{
		"..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "sub/..%2freport.txt", "%2fetc%2fpasswd", "/report.txt",
		"report.txt%00", "sub%5cpage.html", ".", "%2e", "sub/", "sub", "", "report.txt/", strings.Repeat("a/", 2000) + "a", "%ff",
	} {
		if a := s.do("GET", base+name, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("%.60s: %d %s", name, a.StatusCode, a.body)
		}
	}
	s.do("GET", "/v1/runs/x/files/report.txt", "").wants(t, 404)
}

func TestARequestOfTheCapsuleAPIHearsWhereThatIs(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for path, hinted := range map[string]bool{"/handoff": true, "/handof": false} {
		if a := s.do("POST", path, `{}`).wants(t, 404); strings.Contains(a.body, "capsule API") != hinted {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}
