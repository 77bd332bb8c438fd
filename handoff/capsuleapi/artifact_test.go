package capsuleapi

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

// withOutput gives the caller an /io/output.
func withOutput(t testing.TB) *harness {
	t.Helper()
	w := newWorld(t)
	must(t, os.MkdirAll(w.path("io/output"), 0o777))
	w.caller.Output = w.path("io/output")
	w.renew()
	return w
}

func TestWhatAProgramShows(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body string
		want api.ArtifactEvent
	}{
		"a text":              {`{"text":"x"}`, api.ArtifactEvent{ID: "artifact", Parts: []api.Part{{Text: "x"}}}},
		"a named text":        {`{"name":"n","text":"x","media_type":"text/markdown"}`, api.ArtifactEvent{ID: "n", Name: "n", Parts: []api.Part{{Text: "x", MediaType: "text/markdown"}}}},
		"data, which goes on": {`{"id":"i","name":"n","data":[1,null],"append":true}`, api.ArtifactEvent{ID: "i", Name: "n", Append: true, Parts: []api.Part{{Data: []byte(`[1,null]`)}}}},
		"null is data":        {`{"data":null}`, api.ArtifactEvent{ID: "artifact", Parts: []api.Part{{Data: []byte(`null`)}}}},
		"the end of one":      {`{"id":"i","append":true,"last":true,"text":""}`, api.ArtifactEvent{ID: "i", Append: true, Last: true}},
		"a file":              {`{"file":"/io/output/d/f"}`, api.ArtifactEvent{ID: "artifact", Parts: []api.Part{{File: &api.File{Name: "d/f"}}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := withOutput(t)
			write(t, w.path("io/output/d/f"), "content")
			if got := w.do(http.MethodPost, "/artifact", c.body, "Idempotency-Key: k"); got.Code != http.StatusNoContent {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			got := w.runs.Artifacts[0]
			if diff := cmp.Diff(c.want, got.Part); diff != "" || got.Key != "k" {
				t.Errorf("key %q, %s", got.Key, diff)
			}
			if isFile := len(c.want.Parts) > 0 && c.want.Parts[0].File != nil; isFile && (len(w.runs.ShownFile) != 1 || w.runs.ShownFile[0] != "content") {
				t.Errorf("the file is %q", w.runs.ShownFile)
			}
			if strings.Contains(w.log.String(), "content") {
				t.Error("the log has what was shown")
			}
		})
	}
}

func TestWhatCannotBeShown(t *testing.T) {
	t.Parallel()
	w := withOutput(t)
	write(t, w.path("secret"), "s3cret")
	write(t, w.path("io/output/f"), "x")
	must(t, os.Symlink("../../secret", w.path("io/output/link")))
	must(t, os.Symlink("../..", w.path("io/output/up")))
	must(t, os.Mkdir(w.path("io/output/dir"), 0o755))
	for body, want := range map[string]int{
		`{}`:                               http.StatusUnprocessableEntity,
		`{"text":""}`:                      http.StatusUnprocessableEntity,
		`{"text":"x","data":1}`:            http.StatusUnprocessableEntity,
		`{"text":"x","file":"f"}`:          http.StatusUnprocessableEntity,
		`{"text":1}`:                       http.StatusBadRequest,
		`{"text":"x","more":1}`:            http.StatusBadRequest,
		`{"text":"x","name":"a\nb"}`:       http.StatusUnprocessableEntity,
		`{"text":"x","id":"` + long + `"}`: http.StatusUnprocessableEntity,
		`{"file":"../../secret"}`:          http.StatusUnprocessableEntity,
		`{"file":"/etc/passwd"}`:           http.StatusUnprocessableEntity,
		`{"file":"link"}`:                  http.StatusUnprocessableEntity,
		`{"file":"up/secret"}`:             http.StatusUnprocessableEntity,
		`{"file":"dir"}`:                   http.StatusUnprocessableEntity,
		`{"file":"missing"}`:               http.StatusUnprocessableEntity,
		`{"text":"` + strings.Repeat("x", api.MaxPartBytes+1) + `"}`:     http.StatusRequestEntityTooLarge,
		`{"text":"` + strings.Repeat("x", api.MaxPartBytes+1<<20) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		got := w.do(http.MethodPost, "/artifact", body)
		if got.Code != want || strings.Contains(got.Body.String(), "s3cret") {
			t.Errorf("%.60s: %d %s", body, got.Code, got.Body)
		}
	}
	if len(w.runs.ShownFile) > 0 || len(w.runs.Artifacts) > 0 {
		t.Errorf("shown: %q %v", w.runs.ShownFile, w.runs.Artifacts)
	}
}

var long = strings.Repeat("x", api.MaxNameBytes+1)

func TestAReplacedOutputDirectoryShowsNothing(t *testing.T) {
	t.Parallel()
	w := withOutput(t)
	write(t, w.path("elsewhere/f"), "s3cret")
	must(t, os.RemoveAll(w.path("io/output")))
	must(t, os.Symlink("../elsewhere", w.path("io/output")))
	if got := w.do(http.MethodPost, "/artifact", `{"file":"f"}`); got.Code != http.StatusUnprocessableEntity || len(w.runs.ShownFile) > 0 {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestAFileOfAnEngineElsewhereIsNotShown(t *testing.T) {
	t.Parallel()
	w := withOutput(t)
	w.caller.Output = ""
	w.renew()
	if got := w.do(http.MethodPost, "/artifact", `{"file":"f"}`); got.Code != http.StatusNotImplemented {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := w.do(http.MethodPost, "/artifact", `{"text":"f"}`); got.Code != http.StatusNoContent {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
