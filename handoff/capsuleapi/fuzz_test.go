package capsuleapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
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
	f.Add([]byte(`{"id":"i","name":"n","text":"x","append":true,"last":true}`), uint8(4))
	f.Add([]byte(`{"file":"/io/output/shown","media_type":"text/plain"}`), uint8(4))
	f.Add([]byte(`{"file":"link"}`), uint8(4))
	f.Add([]byte(`{"data":{"a":[1.0,null]}}`), uint8(4))
	f.Add([]byte(`{"schema":{"properties":{"v":{"pattern":"\\u0061"}}},"value":{"v":"a"}}`), uint8(5))
	f.Add([]byte(`{"schema":{"input":{},"output":{"$ref":"#/input"}},"side":"output","value":{}}`), uint8(5))
	w := posting(f)
	w.out("a", "carried")
	w.out("d/b", "carried")
	write(f, w.path("secret"), "s3cret")
	for link, target := range map[string]string{"link": "../../../secret", "up": "../../.."} {
		must(f, os.Symlink(target, filepath.Join(w.caller.Outgoing, link)))
	}
	write(f, w.path("io/output/shown"), "carried")
	must(f, os.Symlink("../../secret", w.path("io/output/link")))
	w.caller.Output = w.path("io/output")
	w.limits = handoff.Limits{Calls: 1 << 40}
	w.runs.Add("open", open)
	w.caller.Grants = append(w.caller.Grants, "open")
	w.renew()
	fuzzbound.Run(f, func(t *testing.T, body []byte, address uint8) {
		if len(body) == 0 {
			return
		}
		w.t, w.runs.T = t, t
		w.runs.Calls, w.runs.Copied, w.runs.Artifacts, w.runs.ShownFile = nil, nil, nil, nil
		_ = os.Remove(w.caller.Result) // there is one after a result
		rec := w.do("POST", []string{"/handoff", "/execute", "/progress", "/invocation/result", "/artifact", "/validate"}[address%6], string(body))
		for _, a := range w.runs.Artifacts {
			if err := api.CheckArtifact(a.Part); err != nil {
				t.Fatalf("%+v was shown: %v", a.Part, err)
			}
		}
		for _, content := range w.runs.ShownFile {
			if content != "carried" {
				t.Fatalf("%q was shown", content)
			}
		}
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
		for _, files := range w.runs.Copied {
			for name, content := range files {
				if !filepath.IsLocal(name) || content != "carried" {
					t.Fatalf("%q was carried as %q", content, name)
				}
			}
		}
	})
}
