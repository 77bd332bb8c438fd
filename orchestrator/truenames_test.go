package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/outputs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Two secrets that are the same once they are masked.
const (
	nameCanary  = "the-first-canary-4711"
	otherCanary = "another-canary-4711"
)

// namedFiles are the output files of a run that names all by its secrets.
var namedFiles = []string{nameCanary, otherCanary + "/x", "sub/" + otherCanary + ".txt", "sub/" + nameCanary + ".txt", "plain"}

// namesSecrets makes the files, and the output that names each by its field.
func (a *actor) namesSecrets(t *testing.T) run.Result {
	result, err := a.succeed()
	if err != nil {
		t.Error(err)
	}
	byField := map[string]string{}
	for _, name := range namedFiles {
		path := filepath.Join(a.OutputDir(), name)
		if _, err := os.Stat(path); !a.resumed {
			write(t, path, run.Digest(name))
		} else if err != nil {
			t.Errorf("the program's file can't be found again: %v", err)
		}
		content, err := os.ReadFile(path)
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		if err != nil {
			t.Error(err)
		}
		field := "of " + name
		byField[field] = name
		pointer := strictjson.Pointer("files", field)
		result.Files = append(result.Files, api.File{Name: name, SizeBytes: int64(len(run.Digest(name))), SHA256: sum, Pointer: &pointer})
	}
	result.Output = encoded(map[string]any{"files": byField, "of " + nameCanary: 1, "of " + otherCanary: 2})
	return result
}

// namesFiles gives the unit an output whose fields name files.
func namesFiles(t *testing.T) func(*Options) {
	return func(o *Options) {
		write(t, filepath.Join(o.Sources[0], "worker", "schema.json"), `{"input": {"type": "object"}, "output": {"type": "object", "properties": {
			"files": {"type": "object", "additionalProperties": {"type": "string", "format": "file_path"}}}}}`)
	}
}

func TestNamesThatHoldSecretsAreMasked(t *testing.T) {
	t.Parallel()
	p := newPlays(t, &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
		a.Hide([]string{nameCanary, otherCanary})
		return a.namesSecrets(t), nil
	}}, namesFiles(t))
	p.namesAreMasked(p.submit())
}

// namesAreMasked awaits a run of namesSecrets and looks everywhere.
func (p *plays) namesAreMasked(id string) {
	p.t.Helper()
	record := p.await(id)
	within(p.t, func() bool { return p.service.jobs.count() == 0 }, func() string { return "it isn't over" })
	var output map[string]any
	if err := json.Unmarshal(record.Output, &output); err != nil || len(output) != 3 || len(output["files"].(map[string]any)) != len(namedFiles) {
		p.t.Errorf("the output has lost something: %s, %v", record.Output, err)
	}
	contents := map[string]bool{}
	for _, file := range record.Files {
		if named, _ := strictjson.Lookup(output, strictjson.Path(*file.Pointer)); named != any(file.Name) {
			p.t.Errorf("%s leads to %v, not to %s", *file.Pointer, named, file.Name)
		}
		f, _, err := p.service.Files.Open(trusted.Context(p.t), id, file.Name)
		if err != nil {
			p.t.Errorf("%s can't be had: %v", file.Name, err)
			continue
		}
		raw, _ := io.ReadAll(f)
		_ = f.Close()
		contents[string(raw)] = true
	}
	for _, name := range namedFiles {
		if !contents[run.Digest(name)] {
			p.t.Errorf("the content of %s is under no name: %s", name, show(record))
		}
	}
	err := filepath.WalkDir(p.opts.Home, func(path string, entry os.DirEntry, err error) error {
		var raw []byte
		if err == nil && entry.Type().IsRegular() {
			raw, err = os.ReadFile(path)
		}
		if strings.Contains(path+string(raw), "canary-4711") {
			p.t.Errorf("a secret is in %s", path)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	if text := show(record); strings.Contains(text, "canary-4711") {
		p.t.Errorf("a secret is in %s", text)
	}
}

// A process dies when it has given the files other names, and has stored no end.
func TestNamesAreMaskedOnceMoreAfterADeath(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, &stage{attempt: func(ctx context.Context, a *actor) (run.Result, error) {
		a.Hide([]string{nameCanary, otherCanary})
		result := a.namesSecrets(t)
		if a.resumed {
			return result, nil
		}
		j := &job{Run: a.Run}
		if masked := outputs.Mask(ctx, j.Run, result); masked.Outcome != api.Success || masked.Files[0].Name != "2-****4711" { // there is a directory ****4711
			t.Errorf("%s %+v", masked.Outcome, masked.Files)
		}
		close(gate)
		return a.waits(ctx, nil)
	}}, namesFiles(t))
	id := p.submit()
	<-gate
	p.stop()
	p.start()
	p.namesAreMasked(id)
	if _, err := os.Stat(filepath.Join(p.opts.Home, layout.Runs, id, layout.TrueNames)); err == nil {
		t.Error("the true names are left")
	}
}

// The files of artifacts are known by their names.
func TestNamesOfArtifactsAreMasked(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newPlays(t, talking(func(ctx context.Context, a *actor) error {
		a.Hide([]string{nameCanary, otherCanary})
		for _, name := range []string{nameCanary, otherCanary, nameCanary} {
			if err := artifact(ctx, a, showsFile(t, "a", name, name[:7])); err != nil {
				return err
			}
		}
		return nil
	}, gate))
	id := p.submit()
	p.untilTold(id, api.EventArtifact, 3)
	if told := strings.Join(p.toldOf(id, api.EventArtifact), ", "); told != "a file ****4711, a file 2-****4711, a file ****4711" {
		t.Errorf("it tells of %q", told)
	}
	for name, want := range map[string]string{"****4711": nameCanary[:7], "2-****4711": otherCanary[:7]} {
		f, _, err := artifactsOf(p.service).OpenFile(trusted.Context(t), id, "a", name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := io.ReadAll(f); string(raw) != want {
			t.Errorf("%s has %q", name, raw)
		}
		_ = f.Close()
	}
	close(gate)
	p.await(id)
}
