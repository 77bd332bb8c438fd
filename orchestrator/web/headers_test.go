package web_test

import (
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// regexpIn is the first group of a pattern in a text.
func regexpIn(t testing.TB, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s isn't in %s", pattern, text)
	}
	return found[1]
}

func TestEveryAnswerOfThePageGuardsTheBrowser(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	id := p.ran("files", "a.txt")
	anyName := regexp.MustCompile(`\{[^}]*\}`)
	paths := []string{"GET /ui/nothing", "GET /ui/runs/none", "GET /ui/runs/" + id + "/files/a.txt", "GET /ui/login?code=x"}
	for _, route := range p.web.Routes() {
		paths = append(paths, anyName.ReplaceAllString(strings.Replace(route.Pattern, "{id}", id, 1), "x"))
	}
	for _, of := range paths {
		method, path, _ := strings.Cut(of, " ")
		for _, signedIn := range []bool{false, true} {
			p.client = p.newBrowser()
			if signedIn {
				p.signIn()
			}
			guards(t, of, p.do(p.request(method, path, fields())))
		}
	}
	guards(t, "foreign origin", p.do(p.request("POST", "/ui/runs", fields(), "Origin: https://evil.example")))
}

func guards(t *testing.T, of string, a answer) {
	t.Helper()
	for name, pattern := range map[string]string{
		"Content-Security-Policy": `^default-src 'none';.*frame-ancestors 'none'|^sandbox|; ?sandbox`, "X-Content-Type-Options": "^nosniff$",
		"Referrer-Policy": "^no-referrer$", "Cross-Origin-Opener-Policy": "^same-origin$", "Cross-Origin-Resource-Policy": "^same-origin$",
	} {
		if got := a.Header[name]; len(got) != 1 || !regexp.MustCompile(pattern).MatchString(got[0]) {
			t.Errorf("%s: %s: %q", of, name, got)
		}
	}
	policy := a.Header.Get("Content-Security-Policy")
	if html := strings.HasPrefix(a.Header.Get("Content-Type"), "text/html"); html && strings.Contains(policy, "unsafe") {
		t.Errorf("%s: policy %s", of, policy)
	}
	kept := a.Header.Get("Cache-Control")
	if !strings.Contains(kept, "no-store") && (kept != "private" || !strings.Contains(of, "/files/")) { // a file has its digest
		t.Errorf("%s: Cache-Control: %s", of, kept)
	}
	if a.StatusCode >= 500 {
		t.Errorf("%s: %s: %s", of, a.Status, a.body)
	}
}

// What pages load is kept by browsers for ever, and small.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	const mostBytes, mostZipped = 100 << 10, 35 << 10
	reference := regexp.MustCompile(`(?:"\./static/|"\./)([a-z]+\.[0-9a-f]{12}\.[a-z]+)"`)
	seen, plain, zipped := map[string]bool{}, 0, 0
	for queue := []string{p.get("/ui/login").wants(t, 200).body}; len(queue) > 0; queue = queue[1:] {
		for _, found := range reference.FindAllStringSubmatch(queue[0], -1) {
			if seen[found[1]] {
				continue
			}
			seen[found[1]] = true
			a, small := p.get("/ui/static/"+found[1]), p.get("/ui/static/"+found[1], "Accept-Encoding: br, gzip")
			for _, of := range []answer{a, small} {
				of.wants(t, http.StatusOK)
				if of.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || of.Header.Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s: %v", found[1], of.Header)
				}
			}
			if small.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s isn't zipped, or is when nobody asks for it", found[1])
			}
			plain, zipped, queue = plain+len(a.body), zipped+len(small.body), append(queue, a.body)
		}
	}
	files, err := fs.Glob(os.DirFS("."), "static/*")
	must(t, err)
	if len(seen) != len(files) {
		t.Errorf("pages load %d of %d static files: %v", len(seen), len(files), seen)
	}
	if t.Logf("%d bytes, %d zipped", plain, zipped); plain > mostBytes || zipped > mostZipped {
		t.Errorf("static files have %d bytes, %d zipped", plain, zipped)
	}
	p.get("/ui/static/page.css").wants(t, 404, "load the page again")
}
