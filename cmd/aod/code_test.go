package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
)

// drawing is a program that counts, and draws a picture of 3 by 2 pixels.
const drawing = `import struct, zlib
def chunk(kind, data):
    return struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + b"\xff\x80\0" * 3 for _ in range(2))
with open("picture.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack("!2I5B", 3, 2, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
print("drawn")
sum(range(10))`

func isDrawing(t *testing.T, raw []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil || picture.Bounds().Dx() != 3 || picture.Bounds().Dy() != 2 {
		t.Errorf("%v: %v", picture, err)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestEverybodyHasProgramsRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	answers := fmt.Sprintf(`repeat: true
answers:
- tool_calls: [{name: run, arguments: {code: %s}}]
- tool_calls: [{name: final_answer, arguments: {sum: 45, picture: picture.png}}]
`, asJSON(t, drawing))
	write(t, answers, s.data, "answers.yaml")
	write(t, "code: true\nproviders: {said: {kind: script, answers: answers.yaml}}\nmodels: {m: {use: [said/any]}}\n", s.data, "aod.yaml")
	s.flags = append(s.flags, "--config", filepath.Join(s.data, "aod.yaml"))
	s.addFlow("counts", "", "start: it\nnodes:\n  it:\n    run: aod.code\n    with: {code: '${{ input.code }}'}\n    set: {sum: '${{ out.result }}', said: '${{ out.stdout }}'}\n"+
		"output: {sum: '${{ state.sum }}', said: '${{ state.said }}'}\n")
	drawer := filepath.Join(s.units, "drawer")
	write(t, "FROM aod/base\nCOPY . /capsule/\n", drawer, "Dockerfile")
	write(t, "import aod\n\naod.run()\n", drawer, "run.py")
	write(t, "name: drawer\nmodel: m\nlimits: {timeout: 2m}\n", drawer, "agent.yaml")
	write(t, "- {name: run, capsule: aod.code}\n", drawer, "tools.yaml")
	write(t, "Draw.\n", drawer, "src", "ai", "task.md")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"sum": {"type": "int"}, "picture": {"type": "string", "format": "file_path"}}, "required": ["sum", "picture"]}}`, drawer, "schema.json")
	s.start()
	program := asJSON(t, map[string]any{"code": drawing})

	t.Run("a flow", func(t *testing.T) {
		if r := s.ran("counts", program); r.Outcome != api.Success || string(r.Output) != `{"said":"drawn\n","sum":45}` {
			t.Errorf("%s %+v", r.Output, r.Error)
		}
	})
	t.Run("an agent", func(t *testing.T) {
		r := s.ran("drawer", `{}`)
		if r.Outcome != api.Success || len(r.Calls) != 1 || r.Calls[0].Unit != "aod.code" {
			t.Fatalf("%s", asJSON(t, r))
		}
		raw, err := s.file(r, "picture.png")
		if err != nil {
			t.Fatal(err)
		}
		isDrawing(t, raw)
	})
	t.Run("a client of MCP", func(t *testing.T) {
		session := s.speaksMCP(s.atHTTP(), "2025-11-25", nil)
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "aod_code", Arguments: json.RawMessage(program)})
		if err != nil || result.IsError {
			t.Fatalf("%+v %v", result, err)
		}
		if got := asJSON(t, result.StructuredContent); !strings.Contains(got, `"result":45,"stderr":"","stdout":"drawn\n"`) {
			t.Error(got)
		}
		for _, content := range result.Content {
			if picture, is := content.(*sdk.ImageContent); is {
				isDrawing(t, picture.Data)
				return
			}
		}
		t.Errorf("there is no picture in %s", asJSON(t, result.Content))
	})
	t.Run("a client of A2A", func(t *testing.T) {
		task := s.taskClient("aod.code", peertest.Forms[0]).mustSend(messageOf(a2a.NewDataPart(map[string]any{"code": drawing})), false)
		for _, artifact := range task.Artifacts {
			for _, part := range artifact.Parts {
				if raw, is := part.Content.(a2a.Raw); is {
					isDrawing(t, raw)
					return
				}
			}
		}
		t.Errorf("there is no picture in %s: %s", task.Status.State, asJSON(t, task.Artifacts))
	})
}

// What a program does is its caller's: it comes back in so many bytes and so much time, and nothing of it stays.
func TestHostileProgramsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	write(t, "code: true\nunit: {aod.code: {limits: {output: 4MiB, memory: 256MiB, pids: 48}}}\n", s.data, "aod.yaml")
	s.flags = append(s.flags, "--config", filepath.Join(s.data, "aod.yaml"))
	s.start()
	for name, hostile := range map[string]struct{ program, want string }{ // what ends by itself has more time than it takes
		"it doesn't end":       {"# 1\nwhile True: pass", `"error":"it was ended after 1 s"`},
		"it takes all memory":  {"b = []\nwhile True: b.append(bytearray(1 << 20))", `MemoryError|ended with -9|SIGKILL|137`},
		"it forks for ever":    {"import os, time\nwhile os.fork(): pass\ntime.sleep(99)", `Resource temporarily unavailable`}, // soon: few processes
		"it prints for ever":   {"# 1\nwhile True: print('y' * 999)", `"error":"it was ended after 1 s"`},
		"it fills its disk":    {"with open('x', 'wb') as f: f.write(bytes(64 << 20))", `No space left|limit|File too large`},
		"it kills its parent":  {"import os\nos.kill(os.getppid(), 9)", `SIGKILL`},
		"it gives out a link":  {"import os\nos.symlink('/etc/passwd', 'stolen')", `"files":\[\]`},
		"it looks for others":  {"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:7070/capsules').read().decode()", `"result":"\{\\"capsules\\":\{\}`},
		"it lies to its agent": {"import os, gc, socket\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\0\\0\\0\\2{}' * 9)\n    except OSError: pass", `"error"|"files"`},
		"it leaves itself":     {"import subprocess\nsubprocess.Popen(['sleep', '99'], start_new_session=True).pid > 0", `"result":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seconds := 600
			if strings.HasPrefix(hostile.program, "# 1") {
				seconds = 1
			}
			r := s.ran("aod.code", asJSON(t, map[string]any{"code": hostile.program, "timeout": seconds}))
			said := string(r.Output) + asJSON(t, map[string]any{"error": r.Error, "warnings": r.Warnings})
			if !regexp.MustCompile(hostile.want).MatchString(said) || len(said) > 1<<16 {
				t.Errorf("it came to %.2000s", said)
			}
		})
	}
}
