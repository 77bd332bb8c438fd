package upstream

import (
	"errors"
	"io"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// What is clean stays below the base, however often a server decodes and cleans it.
func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "/a/../b", "/%2e%2e/", "/%252e", "//", "/a%2fb", "/..;/x", "/a\\b", "/a%5c", "/%", "/%c0%ae%c0%ae/", "/a b", "/.%20/"} {
		f.Add(seed)
	}
	fuzzbound.Run(f, func(t *testing.T, escaped string) {
		clean, good := cleanPath(escaped)
		if !good || clean == "" {
			return
		}
		s := &service{base: &url.URL{Scheme: "http", Host: "h", Path: "/base"}}
		sent := s.target(clean, "").EscapedPath()
		for range 3 {
			if cleaned := path.Clean(strings.ReplaceAll(sent, `\`, "/")); cleaned != "/base" && !strings.HasPrefix(cleaned, "/base/") {
				t.Fatalf("%q leads to %q", escaped, cleaned)
			}
			decoded, err := url.PathUnescape(sent)
			if err != nil {
				return
			}
			sent = decoded
		}
	})
}

// A key never comes out of a body, in whichever parts it comes, and all else does.
func FuzzGuarded(f *testing.F) {
	f.Add("some hunter2-hunter2 more", 3)
	f.Add("hunter2-hunterhunter2\\u002dhunter2", 1)
	f.Add("nothing of it", 7)
	fuzzbound.Run(f, func(t *testing.T, body string, size int) {
		g := newGuarded(&inParts{body, max(size%64, 1)}, key)
		out := httptest.NewRecorder()
		buf := make([]byte, 16)
		var err error
		for err == nil {
			var n int
			n, err = g.Read(buf)
			out.Body.Write(buf[:n])
		}
		got, quotes := out.Body.String(), secrets.Secret(key).In([]byte(body))
		if secrets.Secret(key).In([]byte(got)) || !strings.HasPrefix(body, got) || quotes != errors.Is(err, errQuotesKey) || !quotes && got != body {
			t.Errorf("%q of %q, %v", got, body, err)
		}
	})
}

// inParts gives a text in parts of a size.
type inParts struct {
	left string
	size int
}

func (r *inParts) Read(p []byte) (int, error) {
	if r.left == "" {
		return 0, io.EOF
	}
	n := copy(p, r.left[:min(r.size, len(r.left))])
	r.left = r.left[n:]
	return n, nil
}
