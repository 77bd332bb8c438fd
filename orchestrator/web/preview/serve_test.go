package preview

import (
	"errors"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"
)

// served is the answer to a request with these headers, in pairs.
func served(t *testing.T, file Content, name string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(trusted.Context(t), http.MethodGet, "/ui/file", http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Serve(w, r, file, name, "abc")
	return w.Result()
}

func TestBytesAreServedSoThatNothingRuns(t *testing.T) {
	t.Parallel()
	const (
		saved      = "application/octet-stream"
		sandbox    = "sandbox; default-src 'none'"
		forDrawing = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
	)
	drawn := svgRoot + svgBody
	for name, c := range map[string]struct{ content, name, dest, media, policy, disposition string }{
		"a picture":                     {encoded(t, png.Encode), "a.png", "image", "image/png", sandbox, ""},
		"a picture in a tab":            {encoded(t, png.Encode), "a.png", "document", "image/png", sandbox, ""},
		"a GIF that says it's HTML":     {gifOf(t) + "<script>", "a.html", "document", "image/gif", sandbox, ""},
		"a bomb":                        {pngHeader(60000, 60000), "a.png", "image", saved, sandbox, "attachment; filename=a.png"},
		"an SVG for a picture":          {drawn, "a.svg", "image", "image/svg+xml", forDrawing, ""},
		"an SVG for who doesn't say so": {drawn, "a.svg", "", "image/svg+xml", forDrawing, ""},
		"an SVG in a tab":               {drawn, "a.svg", "document", saved, sandbox, "attachment; filename=a.svg"},
		"an SVG in a frame":             {drawn, "a.svg", "iframe", saved, sandbox, "attachment; filename=a.svg"},
		"an SVG for a script":           {drawn, "a.svg", "empty", saved, sandbox, "attachment; filename=a.svg"},
		"HTML":                          {"<script>alert(1)</script>", "x/a.html", "document", saved, sandbox, "attachment; filename=a.html"},
		"HTML that says it's a picture": {"<script>alert(1)</script>", "a.png", "image", saved, sandbox, "attachment; filename=a.png"},
		"a PDF":                         {"%PDF-1.7", "a.pdf", "document", saved, sandbox, "attachment; filename=a.pdf"},
		"nothing":                       {"", "a.txt", "", saved, sandbox, "attachment; filename=a.txt"},
		"a name in another language":    {"a", "naïve \"q\".csv", "", saved, sandbox, "attachment; filename*=utf-8''na%C3%AFve%20%22q%22.csv"},
		"a name that turns itself":      {"a", "x\u202egnp.exe\r\n\x00", "", saved, sandbox, "attachment; filename=x_gnp.exe___"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := served(t, strings.NewReader(c.content), c.name, "Sec-Fetch-Dest", c.dest)
			want := http.Header{
				"Content-Type": {c.media}, "Content-Security-Policy": {c.policy}, "X-Content-Type-Options": {"nosniff"},
				"Cross-Origin-Resource-Policy": {"same-origin"}, "Cache-Control": {"private"}, "Vary": {"Sec-Fetch-Dest"},
				"Etag": {`"abc"`}, "Accept-Ranges": {"bytes"}, "Content-Length": {a.Header.Get("Content-Length")},
			}
			if c.disposition != "" {
				want.Set("Content-Disposition", c.disposition)
			}
			if diff := cmp.Diff(want, a.Header); diff != "" {
				t.Error(diff)
			}
			if body, err := io.ReadAll(a.Body); err != nil || string(body) != c.content {
				t.Errorf("%d bytes of %d, %v", len(body), len(c.content), err)
			}
		})
	}
}

func TestAPartOfAFileIsServed(t *testing.T) {
	t.Parallel()
	a := served(t, strings.NewReader("0123456789"), "a.txt", "Range", "bytes=2-4")
	if body, err := io.ReadAll(a.Body); a.StatusCode != http.StatusPartialContent || string(body) != "234" || err != nil {
		t.Errorf("%d %q %v", a.StatusCode, body, err)
	}
	a = served(t, strings.NewReader("0123456789"), "a.txt", "Range", "bytes=10-")
	if a.StatusCode != http.StatusRequestedRangeNotSatisfiable || a.Header.Get("Etag") != "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if a := served(t, strings.NewReader("0123456789"), "a.txt", "If-None-Match", `"abc"`); a.StatusCode != http.StatusNotModified {
		t.Errorf("%d", a.StatusCode)
	}
}

// unseekable is a file whose size can't be had.
type unseekable struct{ strings.Reader }

func (*unseekable) Seek(int64, int) (int64, error) { return 0, errors.New("it can't be sought in") }

func TestAFileThatCantBeReadIsAnError(t *testing.T) {
	t.Parallel()
	if a := served(t, &unseekable{}, "a.png"); a.StatusCode != http.StatusInternalServerError {
		t.Errorf("%d", a.StatusCode)
	}
}
