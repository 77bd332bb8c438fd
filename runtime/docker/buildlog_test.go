package docker

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/runtime"
)

// follow reads a recorded stream and returns its events as lines.
func follow(t *testing.T, r io.Reader) (log *buildLog, events []string, err error) {
	t.Helper()
	log = newBuildLog(func(e runtime.BuildEvent) {
		line := fmt.Sprintf("%s %s", e.State, e.Name)
		if e.State == runtime.StepLog {
			line = "log " + e.Log
		}
		events = append(events, line)
	})
	err = log.read(r)
	return log, events, err
}

func open(t *testing.T, name string) io.Reader {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(content)
}

func TestRecordedBuilds(t *testing.T) {
	const command = "RUN echo hello; for i in 1 2 3; do echo line $i; done; exit 7"
	failing := []string{"log hello", "log line 1", "log line 2", "log line 3", "failed"}
	for file, want := range map[string][]string{
		"buildkit-failing.json": append([]string{"started [2/2] " + command}, append(failing[:4:4], "failed [2/2] "+command)...),
		"classic-failing.json":  append([]string{"started [3/4] " + command}, append(failing[:4:4], "failed [3/4] "+command)...),
	} {
		t.Run(file, func(t *testing.T) {
			log, events, err := follow(t, open(t, file))
			if diff := cmp.Diff(want, events[len(events)-len(want):]); diff != "" {
				t.Error(diff)
			}
			public := fault.Public(log.failure(err))
			step, _ := strings.CutPrefix(want[0], "started ")
			wantMsg := "the build failed in step " + step + ": exit code 7\nhello\nline 1\nline 2\nline 3"
			if public.Kind != fault.Build || public.Msg != wantMsg {
				t.Errorf("%v: %q", public.Kind, public.Msg)
			}
		})
	}
	t.Run("buildkit-nobase.json", func(t *testing.T) {
		log, _, err := follow(t, open(t, "buildkit-nobase.json"))
		public := fault.Public(log.failure(err))
		if public.Msg != "the base image nosuch/image:1 is not on the engine and no registry could be reached for it" {
			t.Error(public.Msg)
		}
	})
	t.Run("buildkit-syntax.json", func(t *testing.T) {
		log, _, err := follow(t, open(t, "buildkit-syntax.json"))
		public := fault.Public(log.failure(err))
		if public.Msg != "the build failed: dockerfile parse error line 3: unknown instruction: RUNN" {
			t.Error(public.Msg)
		}
	})
	for file, want := range map[string][]string{
		"classic-cached.json": {
			"started [1/5] FROM debian:trixie-slim", "done [1/5] FROM debian:trixie-slim",
			"started [2/5] LABEL aod.test=docker", "cached [2/5] LABEL aod.test=docker",
			"started [3/5] RUN echo hello", "cached [3/5] RUN echo hello",
			"started [4/5] COPY Dockerfile /x", "cached [4/5] COPY Dockerfile /x",
			"started [5/5] LABEL aod.test=docker", "cached [5/5] LABEL aod.test=docker",
		},
		"buildkit-cached.json": {
			"cached copy /context /", "cached [2/3] RUN echo hello", "cached [3/3] COPY Dockerfile /x",
		},
	} {
		t.Run(file, func(t *testing.T) {
			log, events, err := follow(t, open(t, file))
			if err != nil || !strings.HasPrefix(log.imageID, "sha256:") {
				t.Fatalf("image %q, %v", log.imageID, err)
			}
			for _, event := range want {
				if !strings.Contains(strings.Join(events, "\n")+"\n", event+"\n") {
					t.Errorf("%q is not in %q", event, events)
				}
			}
		})
	}
}

func TestReasonsOfNewerBuilders(t *testing.T) {
	for text, want := range map[string]string{
		`failed to solve: process "/bin/sh -c exit 3" did not complete successfully: exit code: 3`: "exit code 3",
		"failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory":   "there is no such Dockerfile in the build context",
		`failed to solve: failed to compute cache key: "/x": not found`:                            `failed to compute cache key: "/x": not found`,
		strings.Repeat("x", 2*reasonLimit):                                                         strings.Repeat("x", reasonLimit) + "…",
	} {
		if got := buildReason(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestBaseImageOfAStep(t *testing.T) {
	for name, want := range map[string]string{
		"[1/2] FROM docker.io/library/debian:13@sha256:ab":       "debian:13@sha256:ab",
		"[build 1/2] FROM ghcr.io/a/b:1":                         "ghcr.io/a/b:1",
		"[1/3] FROM --platform=linux/amd64 alpine AS x":          "alpine",
		"[internal] load metadata for docker.io/aod/base:latest": "aod/base:latest",
		"[2/3] RUN echo FROM debian":                             "",
		"[internal] load remote build context":                   "",
	} {
		if got := (&buildStep{name: name}).baseImage(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func stream(texts ...string) io.Reader {
	var b bytes.Buffer
	for _, text := range texts {
		json.NewEncoder(&b).Encode(map[string]string{"stream": text})
	}
	b.WriteString(`{"aux":{"ID":"sha256:1"}}`)
	return &b
}

func TestOutputIsSplitIntoBoundedLines(t *testing.T) {
	long := strings.Repeat("x", 3*lineLimit) + "\n"
	_, events, err := follow(t, stream("Step 1/1 : RUN x", "\n", "a", "b\nc\r\n", "bad \xff\n", "\n", long, "end"))
	if err != nil {
		t.Fatal(err)
	}
	var logs []string
	for _, e := range events {
		if line, ok := strings.CutPrefix(e, "log "); ok {
			logs = append(logs, line)
		}
	}
	piece := strings.Repeat("x", lineLimit)
	want := []string{"ab", "c", "bad \ufffd", "", piece, piece, piece, "", "end"}
	if diff := cmp.Diff(want, logs); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheLastLinesOfAFailingStepAreKept(t *testing.T) {
	texts := []string{"Step 1/1 : RUN x", "\n"}
	for i := range 1000 {
		texts = append(texts, fmt.Sprintf("line %d %s\n", i, strings.Repeat("y", 1000)))
	}
	var b bytes.Buffer
	io.Copy(&b, stream(texts...))
	b.WriteString(`{"error":"The command 'x' returned a non-zero code: 1"}`)
	log, _, err := follow(t, &b)
	msg := fault.Public(log.failure(err)).Msg
	if lines := strings.Count(msg, "\n"); lines != tailLines || len(msg) > tailLines*(tailLineSize+10)+300 || !strings.Contains(msg, "\nline 999 ") {
		t.Errorf("%d lines, %d bytes", lines, len(msg))
	}
}

func TestStreamsThatEndTooEarlyOrAreTooLong(t *testing.T) {
	_, _, err := follow(t, strings.NewReader(`{"stream":"Step 1/1 : RUN x"}`))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	_, _, err = follow(t, io.MultiReader(strings.NewReader(`{"stream":"`), io.LimitReader(endless{}, 10*messageLimit)))
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("endless: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestAnEngineWithoutBuildKitGetsTheClassicBuilder(t *testing.T) {
	for name, refusal := range map[string]http.HandlerFunc{
		"it says so at once":       answer(http.StatusBadRequest, `{"message":"buildkit not enabled on daemon"}`),
		"it isn't implemented":     answer(http.StatusNotImplemented, `{"message":"no"}`),
		"it says so in its stream": answer(http.StatusOK, `{"error":"no active session for x: context deadline exceeded"}`),
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			contexts := 0
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"POST /build": func(w http.ResponseWriter, r *http.Request) {
					versions = append(versions, r.URL.Query().Get("version"))
					if r.URL.Query().Get("version") == "2" {
						refusal(w, r)
						return
					}
					answer(http.StatusOK, `{"aux":{"ID":"sha256:1"}}`)(w, r)
				},
			}})
			spec := runtime.BuildSpec{WriteContext: func(w io.Writer) error { contexts++; return nil }}
			for range 2 {
				if id, err := e.Build(t.Context(), spec, nil); id != "sha256:1" || err != nil {
					t.Fatalf("%q, %v", id, err)
				}
			}
			if diff := cmp.Diff([]string{"2", "1", "1"}, versions); diff != "" || contexts != 3 {
				t.Errorf("%d contexts, builders %s", contexts, diff)
			}
		})
	}
	t.Run("an API before BuildKit is not asked", func(t *testing.T) {
		e := connect(t, &fakeAPI{version: "1.38", answers: map[string]http.HandlerFunc{
			"POST /build": func(w http.ResponseWriter, r *http.Request) {
				answer(http.StatusOK, `{"aux":{"ID":"sha256:`+r.URL.Query().Get("version")+`"}}`)(w, r)
			},
		}})
		id, err := e.Build(t.Context(), runtime.BuildSpec{WriteContext: func(io.Writer) error { return nil }}, nil)
		if id != "sha256:1" || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	})
}

// traces are the recorded progress messages, as seeds.
func traces(f *testing.F) {
	for _, name := range []string{"buildkit-failing.json", "buildkit-nobase.json", "buildkit-cached.json"} {
		content, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			var m struct{ Aux any }
			if json.Unmarshal(line, &m) != nil {
				continue
			}
			if text, ok := m.Aux.(string); ok {
				if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
					f.Add(decoded)
				}
			}
		}
	}
}

func FuzzDecodeStatus(f *testing.F) {
	traces(f)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), []byte{0x1a, 1, 'x'}))
	fuzzbound.Run(f, func(t *testing.T, b []byte) {
		s, err := decodeStatus(b)
		if err != nil {
			return
		}
		size := 0
		for _, v := range s.vertexes {
			size += len(v.digest) + len(v.name) + len(v.err)
		}
		for _, out := range s.logs {
			size += len(out.vertex) + len(out.text)
		}
		if size > 20*len(b)+20 {
			t.Errorf("%d bytes became %d", len(b), size)
		}
	})
}

func FuzzBuildLog(f *testing.F) {
	for _, name := range []string{"buildkit-failing.json", "buildkit-nobase.json", "classic-cached.json", "classic-failing.json"} {
		content, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte(`{"stream":"STEP 1/2: FROM x"}{"stream":"y\n"}{"error":"z"}`))
	fuzzbound.Run(f, func(t *testing.T, b []byte) {
		log := newBuildLog(func(e runtime.BuildEvent) {
			if len(e.Log) > 2*lineLimit || len(e.Name) > nameLimit+3 || strings.Contains(e.Log, "\n") {
				t.Errorf("event %+v", e)
			}
		})
		if err := log.read(bytes.NewReader(b)); err != nil {
			_ = log.failure(err)
		}
	})
}
