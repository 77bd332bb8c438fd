package handoff

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/fuzzbound"
)

// FuzzHandoff sends bodies to the addresses that take one. Whatever comes, the answer is
// JSON with a known status, and nothing but the files of outgoing is carried.
func FuzzHandoff(f *testing.F) {
	for _, c := range refusals {
		if len(c.body) < 1000 {
			f.Add([]byte(c.body), uint8(0))
		}
	}
	f.Add([]byte(`{"target":"callee","args":{"f":"/io/handoff/outgoing/a","fs":["d/b","./a"],"o":{"f":"link"}},"timeout":"1s"}`), uint8(0))
	f.Add([]byte(`{"capsule":"callee","input":{"f":"x"},"files":{"x":"a","f":"d/b"}}`), uint8(1))
	f.Add([]byte(`{"capsule":"open","input":{"file":"a","files":["/io/handoff/outgoing/d/b","link","x",7]},"files":{"x":"a","y/z":"d/b"}}`), uint8(1))
	f.Add([]byte(`{"target":"open","args":{"files":["a","up/secret"]},"session_id":"s","more":0}`), uint8(0))
	f.Add([]byte(`{"percent":1,"step":"x","message":"y"}`), uint8(2))
	f.Add([]byte(`{"rows":[1.0,"\u00e9"]}`), uint8(3))
	w := posting(f)
	w.out("a", "carried")
	w.out("d/b", "carried")
	write(f, w.path("secret"), "s3cret")
	for link, target := range map[string]string{"link": "../../../secret", "up": "../../.."} {
		must(f, os.Symlink(target, filepath.Join(w.caller.Outgoing, link)))
	}
	w.limits = Limits{Calls: 1 << 40}
	w.runs.add("open", open)
	w.caller.Grants = append(w.caller.Grants, "open")
	w.renew()
	fuzzbound.Run(f, func(t *testing.T, body []byte, address uint8) {
		if len(body) == 0 {
			return
		}
		w.t, w.runs.t = t, t
		w.runs.calls, w.runs.copied = nil, nil
		_ = os.Remove(w.caller.Result) // there is one after a result
		rec := w.do("POST", []string{"/handoff", "/execute", "/progress", "/invocation/result"}[address%4], string(body))
		switch rec.Code {
		case 204:
			if kept, err := os.ReadFile(w.caller.Result); err == nil && !json.Valid(kept) {
				t.Fatalf("%q was kept", kept)
			}
			return
		case 200, 400, 403, 404, 409, 413, 422:
		default:
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		if !json.Valid(rec.Body.Bytes()) || strings.Contains(rec.Body.String(), "s3cret") {
			t.Fatalf("%s", rec.Body)
		}
		for _, files := range w.runs.copied {
			for name, content := range files {
				if !filepath.IsLocal(name) || content != "carried" {
					t.Fatalf("%q was carried as %q", content, name)
				}
			}
		}
	})
}
