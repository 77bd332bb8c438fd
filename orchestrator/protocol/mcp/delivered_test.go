package mcp

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestALinkIntoTheDirectoryForResultsCanBeRead(t *testing.T) {
	t.Parallel()
	f, out := newFake("hello"), filepath.Join(t.TempDir(), "a b")
	f.files[idOf(1)+"/sub/x y.txt"] = "canary"
	f.outcome = func(_ Submission, r *api.Record) { r.Files = []api.File{{Name: "sub/x y.txt", SizeBytes: 6}} }
	s := New(f, Options{Out: out})
	said := speak(t, s, "2025-06-18", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello"}}`)
	var answer struct {
		Result struct {
			Content []struct{ Type, URI string }
		}
	}
	must(t, json.Unmarshal([]byte(said[0]), &answer))
	link := answer.Result.Content[1].URI
	if want := pathURI(filepath.Join(out, idOf(1), "sub/x y.txt")); link != want {
		t.Fatalf("it links to %s, not %s", link, want)
	}
	read := func(uri string) string {
		return speak(t, s, "2025-06-18", `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":`+quoted(uri)+`}}`)[0]
	}
	if got := read(link); !strings.Contains(got, `"text":"canary"`) || !strings.Contains(got, `"uri":"`+link+`"`) {
		t.Errorf("it reads %s", got)
	}
	for _, uri := range []string{"file:///etc/passwd", pathURI(out), link + "z", strings.Replace(link, "sub/", "../", 1), strings.Replace(link, idOf(1), idOf(9), 1)} {
		if got := read(uri); !strings.Contains(got, `"error":{"code":-32602`) {
			t.Errorf("%s: %s", uri, got)
		}
	}
}
