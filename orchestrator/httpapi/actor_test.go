package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

var unitFiles = map[string]string{
	"Dockerfile": "FROM base:1\nCMD [\"actor\"]\n",
	"tools.yaml": "[]\n",
	"agent.yaml": "name: actor\ndescription: does what it is told\n",
	"schema.json": `{
  "input": {"type": "object", "additionalProperties": false, "properties": {
    "do": {"type": "string"},
    "say": {"type": "string"},
    "doc": {"type": "string", "format": "file_path"},
    "docs": {"type": "array", "items": {"type": "string", "format": "file_path"}}
  }},
  "output": {"type": "object", "properties": {
    "n": {"type": "int"}, "got": {"type": "string"}, "report": {"type": "string", "format": "file_path"}
  }}
}
`,
}

// act is the program of every fake container.
func (s *server) act(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dirs := map[string]string{}
	for _, m := range spec.Mounts {
		dirs[m.Target] = m.Source
	}
	if _, filter := dirs[auStdout]; filter {
		return s.filter(ctx, spec, dirs, stderr)
	}
	raw, _ := os.ReadFile(filepath.Join(dirs["/io"], "input.json"))
	var input struct{ Do, Say, Doc string }
	_ = json.Unmarshal(raw, &input)
	fmt.Fprintf(stdout, "out %s\n", input.Say)
	fmt.Fprintf(stderr, "err %s\n", input.Say)
	result := map[string]any{"n": 1}
	switch input.Do {
	case "fail":
		return 3
	case "complain":
		text, _ := json.Marshal(map[string]any{"error": map[string]string{"type": input.Say, "message": input.Say}})
		_ = os.WriteFile(filepath.Join(dirs["/io"], "output.json"), text, 0o600)
		return 1
	case "lie":
		result["n"] = input.Say
	case "lose":
		result["report"] = input.Say
	case "wait":
		select {
		case <-s.release:
		case <-ctx.Done():
		case <-enginetest.Terminated(ctx):
			return 143
		}
	case "show":
		if code := s.show(ctx, dirs, input.Say); code != 0 {
			return code
		}
	case "tell":
		return s.tell(ctx, dirs)
	case "read":
		got, _ := os.ReadFile(filepath.Join(dirs["/io/input"], input.Doc))
		result["got"] = string(got)
	case "list":
		result["got"] = strings.Replace(string(raw), `"do":"list",`, "", 1) + listed(dirs["/io/input"])
	case "files":
		output := filepath.Join(dirs["/io"], "output")
		for name, content := range map[string]string{"report.txt": "0123456789", "sub/page.html": "<script>alert(1)</script>", "naïve \"q\".csv": "a,b"} {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(output, name)), 0o755)
			_ = os.WriteFile(filepath.Join(output, name), []byte(content), 0o600)
		}
		result["report"] = "report.txt"
	}
	text, _ := json.Marshal(result)
	_ = os.WriteFile(filepath.Join(dirs["/io"], "output.json"), text, 0o600)
	return 0
}

// listed tells the files below a directory with their contents.
func listed(dir string) string {
	var all strings.Builder
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&all, " %s=%s", rel, content)
		}
		return nil
	})
	return all.String()
}
