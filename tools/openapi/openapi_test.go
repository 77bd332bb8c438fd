// Package openapi tests the description of the HTTP API with the generators of clients that people use. It is a
// module of its own, so that nobody who builds AOD has to load them.
package openapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	_ "github.com/oapi-codegen/runtime" // which the generated client needs
	"github.com/ogen-go/ogen"
	"github.com/ogen-go/ogen/gen"
	"github.com/ogen-go/ogen/gen/genfs"
	"golang.org/x/tools/go/packages"
)

// served is an `aod serve` without an engine: flows need none.
type served struct {
	url, token string
	document   []byte
}

// serve builds the program and starts a server of it, which ends with the test.
func serve(t *testing.T) served {
	t.Helper()
	dir := t.TempDir()
	program, data := filepath.Join(dir, "aod"), filepath.Join(dir, "data")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/aod")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	done(t, build)
	server := exec.CommandContext(t.Context(), program, "--data", data, "--units", filepath.Join("testdata", "units"),
		"serve", "--listen", "127.0.0.1:0", "--log-level", "error")
	server.Env = append(os.Environ(), "DOCKER_HOST=unix:///nonexistent.sock")
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.WaitDelay = 30 * time.Second
	says, err := server.StderrPipe()
	must(t, err)
	must(t, server.Start())
	words := bufio.NewScanner(says)
	var address string
	for address == "" && words.Scan() {
		_, address, _ = strings.Cut(words.Text(), "aod serves on ")
	}
	go func() {
		for words.Scan() { // to the end: a server that can't write stops
		}
	}()
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended
	token, err := os.ReadFile(filepath.Join(data, "server", "token"))
	must(t, err)
	s := served{url: address, token: strings.TrimSpace(string(token))}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/openapi.json", nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	s.document, err = io.ReadAll(answer.Body)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func done(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestGeneratorsTakeTheDocument gives them the document as it is served.
func TestGeneratorsTakeTheDocument(t *testing.T) {
	s := serve(t)
	t.Run("kin-openapi finds it valid", func(t *testing.T) {
		document(t, s)
	})
	t.Run("oapi-codegen makes a client that works", func(t *testing.T) {
		t.Parallel()
		dir := module(t)
		code, err := codegen.Generate(document(t, s), codegen.Configuration{
			PackageName: "client", Generate: codegen.GenerateOptions{Client: true, Models: true},
			OutputOptions: codegen.OutputOptions{SkipPrune: true}, // for the data of events
		})
		must(t, err)
		write(t, filepath.Join(dir, "client", "client.go"), []byte(code))
		program, err := os.ReadFile(filepath.Join("testdata", "roundtrip", "main.go"))
		must(t, err)
		write(t, filepath.Join(dir, "main.go"), program)
		run := exec.CommandContext(t.Context(), "go", "run", ".", s.url)
		run.Dir, run.Env = dir, append(os.Environ(), "AOD_TOKEN="+s.token)
		done(t, run)
	})
	t.Run("ogen makes a client and a server", func(t *testing.T) {
		t.Parallel()
		dir := module(t)
		spec, err := ogen.Parse(s.document)
		must(t, err)
		traceless := gen.FeatureOptions{Disable: gen.FeatureSet{gen.OgenOtel.Name: {}}} // which would only load more
		generator, err := gen.NewGenerator(spec, gen.Options{Generator: gen.GenerateOptions{Features: &traceless}})
		must(t, err)
		must(t, generator.WriteSource(genfs.FormattedSource{Root: dir}, "api"))
		typed(t, dir)
	})
}

func document(t *testing.T, s served) *openapi3.T {
	t.Helper()
	loaded, err := openapi3.NewLoader().LoadFromData(s.document)
	must(t, err)
	must(t, loaded.Validate(context.Background()))
	return loaded
}

// module is a directory for code that needs what this module has.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		must(t, err)
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, content, 0o644))
}

// typed checks the types of a package, which is several times as fast as to compile it.
func typed(t *testing.T, dir string) {
	t.Helper()
	found, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir, Context: t.Context()}, ".")
	must(t, err)
	for _, p := range found {
		for _, e := range p.Errors {
			t.Error(e)
		}
		if len(p.Syntax) == 0 {
			t.Error(fmt.Sprint(p, " is empty"))
		}
	}
}
