package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// said is everything that the user is told of a failure.
func said(r run.Result) string {
	if r.Failure == nil {
		return ""
	}
	text := []string{r.Failure.Message, r.Failure.Hint}
	for _, f := range r.Failure.Findings {
		text = append(text, f.String(), f.Hint)
	}
	return strings.Join(text, "\n")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// put writes a file below /io.
func put(io, name, content string) {
	must(os.MkdirAll(filepath.Dir(filepath.Join(io, name)), 0o755))
	must(os.WriteFile(filepath.Join(io, name), []byte(content), 0o600))
}

// result is a program's output.json.
func result(content string) func(io string) {
	return func(io string) { put(io, "output.json", content) }
}

// named makes something in /io/output, which the result names.
func named(do func(at string)) func(io string) {
	return func(io string) {
		do(filepath.Join(io, "output", "x"))
		put(io, "output.json", `{"file":"x"}`)
	}
}

func TestAResultThatBreaksTheContract(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	must(os.WriteFile(secret, []byte(`{"n":7}`), 0o600))
	for _, c := range []struct {
		name string
		do   func(io string)
		says string
	}{
		{"none", func(string) {}, "/io/output.json: was not written"},
		{"an empty one", result(``), "/io/output.json"},
		{"no JSON", result(`hello`), "JSON"},
		{"a list", result(`[1]`), "object"},
		{"null", result(`null`), "object"},
		{"two", result(`{}{}`), "/io/output.json"},
		{"a name twice", result(`{"n":1,"n":2}`), "/io/output.json"},
		{"no UTF-8", result("{\"s\":\"\xff\"}"), "UTF-8"},
		{"a number that isn't one", result(`{"n":NaN}`), "JSON"},
		{"a tower", result(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), "deep"},
		{"too much", result(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`), "the limit is 1048576"},
		{"another type", result(`{"n":"x"}`), "#/n: expected integer, got string"},
		{"a link to a file of the host", func(io string) { must(os.Symlink(secret, filepath.Join(io, "output.json"))) }, "symbolic link"},
		{"a link to nothing", func(io string) { must(os.Symlink("nothing", filepath.Join(io, "output.json"))) }, "symbolic link"},
		{"a FIFO that nobody writes", func(io string) { must(syscall.Mkfifo(filepath.Join(io, "output.json"), 0o644)) }, "is a FIFO"},
		{"a directory", func(io string) { must(os.Mkdir(filepath.Join(io, "output.json"), 0o755)) }, "is a directory"},
		{"a file that isn't there", result(`{"file":"x"}`), "not in /io/output"},
		{"a file that is a directory", named(func(at string) { must(os.Mkdir(at, 0o755)) }), "directory"},
		{"a file that is a FIFO", named(func(at string) { must(syscall.Mkfifo(at, 0o644)) }), "FIFO"},
		{"a file that is a link to one of the host", named(func(at string) { must(os.Symlink(secret, at)) }), "symbolic link"},
		{"a file behind a linked directory", func(io string) {
			must(os.Symlink(filepath.Dir(secret), filepath.Join(io, "output", "d")))
			put(io, "output.json", `{"file":"d/secret"}`)
		}, "symbolic link"},
		{"a file's name that climbs", result(`{"file":"../output.json"}`), `".."`},
		{"a file's name from the root", result(`{"file":"/etc/passwd"}`), "absolute"},
		{"several faults", result(`{"n":"x","file":"y"}`), "not in /io/output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.runs(leaves(0, c.do))
			x := b.execution()
			got := b.carriesOut(x)
			wants(t, got, api.ContractViolation, exitContract, "contract_violation", "its result breaks the contract")
			if !strings.Contains(said(got), c.says) || len(got.Failure.Findings) == 0 {
				t.Errorf("the user isn't told %q but:\n%s", c.says, said(got))
			}
			for _, f := range got.Failure.Findings {
				if f.File == "" {
					t.Errorf("a finding without its file: %+v", f)
				}
			}
			if _, err := os.Lstat(x.run.OutputDir()); err == nil || len(got.Files) > 0 {
				t.Errorf("something was published: %v", got.Files)
			}
		})
	}
}

func TestMoreOutputThanItMayGive(t *testing.T) {
	t.Parallel()
	limits := "name: worker\nlimits: {output: 2MiB}\n"
	for _, c := range []struct {
		name string
		do   func(io string)
		says string
	}{
		{"files", func(io string) {
			for n := range 1001 {
				put(io, fmt.Sprintf("output/%d", n), "")
			}
		}, "more than 1000 files and directories"},
		{"directories", func(io string) {
			for n := range 1001 {
				must(os.Mkdir(filepath.Join(io, "output", fmt.Sprint(n)), 0o755))
			}
		}, "more than 1000 files and directories"},
		{"bytes in one", func(io string) {
			put(io, "output/x", "")
			must(os.Truncate(filepath.Join(io, "output/x"), 2<<20+1)) // it takes no room on the disk
		}, "more than 2097152 bytes together"},
		{"bytes together", func(io string) {
			for n := range 3 {
				put(io, fmt.Sprintf("output/%d", n), strings.Repeat("x", 1<<20))
			}
		}, "more than 2097152 bytes together"},
		{"levels", func(io string) { must(os.MkdirAll(filepath.Join(io, "output", strings.Repeat("d/", 60)), 0o755)) }, "nested more than 32"},
		{"than its directory, which is a link", func(io string) {
			must(os.Remove(filepath.Join(io, "output")))
			must(os.Symlink("/etc", filepath.Join(io, "output")))
		}, "/io/output is a symbolic link, not a directory"},
		{"than its directory, which is a file", func(io string) {
			must(os.Remove(filepath.Join(io, "output")))
			put(io, "output", "")
		}, "/io/output is a regular file, not a directory"},
		{"than its directory, which it removed", func(io string) { must(os.Remove(filepath.Join(io, "output"))) }, "was removed by the program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"agent.yaml": limits})
			b.runs(leaves(0, func(io string) {
				c.do(io)
				put(io, "output.json", `{}`)
			}))
			x := b.execution()
			wants(t, b.carriesOut(x), api.LimitExceeded, exitContract, "output_limit", c.says)
			if _, err := os.Lstat(x.run.OutputDir()); err == nil {
				t.Error("something was published")
			}
		})
	}
}

func TestOutputFilesArePublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs(leaves(0, func(io string) {
		put(io, "output/sub/a", "of a")
		put(io, "output/b", "of b")
		must(os.Chmod(filepath.Join(io, "output/b"), 0o4777))
		must(os.Symlink("/etc/passwd", filepath.Join(io, "output/link")))
		must(syscall.Mkfifo(filepath.Join(io, "output/pipe"), 0o644))
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(io, "output/socket")})
		must(err)
		socket.SetUnlinkOnClose(false)
		must(socket.Close())
		put(io, "output/\x1b[2J", "clears a terminal")
		put(io, "output/\xff", "no UTF-8")
		put(io, "elsewhere", "which nobody collects")
		put(io, "output.json", `{"n":1,"file":"sub/a"}`)
	}))
	x := b.execution()
	got := b.carriesOut(x)
	wants(t, got, api.Success, 0, "", "")
	pointer := "/file"
	want := []api.File{
		{Name: "b", SizeBytes: 4, SHA256: digest("of b")},
		{Name: "sub/a", SizeBytes: 4, SHA256: digest("of a"), Pointer: &pointer},
	}
	if diff := cmp.Diff(want, got.Files); diff != "" {
		t.Error(diff)
	}
	if all := below(t, x.run.OutputDir()); all != "b sub sub/a" {
		t.Errorf("published are %s", all)
	}
	if info, err := os.Lstat(filepath.Join(x.run.OutputDir(), "b")); err != nil || info.Mode() != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if w := x.run.Record.Warnings; len(w) != 1 || !utf8.ValidString(w[0]) || strings.Contains(w[0], "\x1b") {
		t.Fatalf("warnings %q", w)
	}
	for _, skipped := range []string{`"link" is a symbolic link`, `"pipe" is a FIFO`, `"socket" is a socket`, "control character", "not UTF-8"} {
		if !strings.Contains(x.run.Record.Warnings[0], skipped) {
			t.Errorf("the user isn't told of %s: %s", skipped, x.run.Record.Warnings[0])
		}
	}
}

func TestWhatStaysBehindIsNamedUpToABound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs(leaves(0, func(io string) {
		for n := range 30 {
			must(os.Symlink("x", filepath.Join(io, "output", fmt.Sprintf("link-%02d", n))))
		}
		put(io, "output.json", `{}`)
	}))
	x := b.execution()
	wants(t, b.carriesOut(x), api.Success, 0, "", "")
	if w := x.run.Record.Warnings; len(w) != 1 || strings.Count(w[0], "link-") != 20 || !strings.HasSuffix(w[0], " and 10 more") {
		t.Errorf("warnings %q", w)
	}
}

func TestOutputFilesGoWhereTheUserWantsThem(t *testing.T) {
	t.Parallel()
	program := leaves(0, func(io string) {
		put(io, "output/sub/a", "new")
		put(io, "output.json", `{"file":"sub/a"}`)
	})
	t.Run("beside what is there, over what has the same name", func(t *testing.T) {
		b := newBench(t)
		b.runs(program)
		x := b.execution()
		x.run.OutDir = t.TempDir()
		put(x.run.OutDir, "mine", "")
		put(x.run.OutDir, "sub/a", "old")
		got := b.carriesOut(x)
		wants(t, got, api.Success, 0, "", "")
		if len(got.Files) != 1 || got.Files[0].Path != filepath.Join(x.run.OutDir, "sub/a") || *got.Files[0].Pointer != "/file" {
			t.Errorf("files %+v", got.Files)
		}
		if raw, err := os.ReadFile(filepath.Join(x.run.OutDir, "sub/a")); string(raw) != "new" || below(t, x.run.OutDir) != "mine sub sub/a" {
			t.Errorf("%q, %v: %s", raw, err, below(t, x.run.OutDir))
		}
	})
	outside := t.TempDir()
	for name, spoil := range map[string]func(out string){
		"a file is in the way": func(out string) { must(os.WriteFile(out, nil, 0o600)) },
		"a link would lead outside": func(out string) {
			must(errors.Join(os.Mkdir(out, 0o700), os.Symlink(outside, filepath.Join(out, "sub"))))
		},
		"a directory has the name":   func(out string) { must(os.MkdirAll(filepath.Join(out, "sub/a/full"), 0o700)) },
		"a file has the directory's": func(out string) { must(os.Mkdir(out, 0o700)); put(out, "sub", "") },
	} {
		t.Run("and the work is kept when "+name, func(t *testing.T) {
			b := newBench(t)
			b.runs(program)
			x := b.execution()
			x.run.OutDir = filepath.Join(t.TempDir(), "out")
			spoil(x.run.OutDir)
			_, err := x.Attempt(t.Context())
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Hint, "--out") || !x.run.Keep {
				t.Errorf("kept %v, error %v", x.run.Keep, err)
			}
			if raw, err := os.ReadFile(filepath.Join(x.run.AttemptDir(), "io/output/sub/a")); string(raw) != "new" {
				t.Errorf("the work is lost: %v", err)
			}
			if left := below(t, outside); left != "" {
				t.Errorf("written outside: %s", left)
			}
			b.ends(x)
		})
	}
}

// TestAnOutputIsPublishedOnce is of a process that dies between publishing and storing: the next
// one reads the same result and gives the same answer.
func TestAnOutputIsPublishedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runs(leaves(0, func(io string) {
		put(io, "output/sub/a", "of a")
		must(os.Symlink("/etc/passwd", filepath.Join(io, "output/link")))
		put(io, "output.json", `{"n":1,"file":"sub/a"}`)
	}))
	x := b.execution()
	x.run.Durable = true
	first, err := x.Attempt(t.Context())
	if err != nil || first.Outcome != api.Success {
		t.Fatalf("%+v, %v", first, err)
	}
	x.Release()
	for range 2 {
		x = b.resumed(x)
		again, err := x.Resume(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Error(diff)
		}
		if all := below(t, x.run.OutputDir()); all != "sub sub/a" {
			t.Errorf("published are %s", all)
		}
	}
	b.ends(x)
}

func TestAFailureTellsItsOwnReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", run.MaxMessage)
	for _, c := range []struct {
		name    string
		content string
		exit    int
		outcome api.Outcome
		kind    string // as the program says
		says    string
	}{
		{"with its type", `{"error":{"type":"ValueError","message":"no rows"}}`, 3, api.CapsuleError, "ValueError", "no rows"},
		{"as a text", `{"error":"no rows"}`, 3, api.CapsuleError, "", "no rows"},
		{"not at all", `{}`, 4, api.CapsuleError, "", "exit code 4"},
		{"in another form", `{"error":["no","rows"]}`, 4, api.CapsuleError, "", "exit code 4"},
		{"without a message", `{"error":{"type":"ValueError"}}`, 4, api.CapsuleError, "", "exit code 4"},
		{"with a message of another type", `{"error":{"type":"ValueError","message":7}}`, 4, api.CapsuleError, "", "exit code 4"},
		{"in something that isn't JSON", `{"error":"no rows"`, 4, api.CapsuleError, "", "exit code 4"},
		{"at too great a length", `{"error":{"type":"` + long + `","message":"` + long + `"}}`, 3, api.CapsuleError, "é", "é"},
		{"in too large a file", `{"error":"no rows","more":"` + strings.Repeat("x", 1<<20) + `"}`, 4, api.CapsuleError, "", "exit code 4"},
		{"of a broken contract", `{"error":{"type":"ContractError","message":"n must be integer"}}`, 1, api.ContractViolation, "ContractError", "n must be integer"},
		{"of a broken contract, with another exit code", `{"error":{"type":"ContractError","message":"n must be integer"}}`, 2, api.CapsuleError, "ContractError", "n must be integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.runs(leaves(c.exit, result(c.content)))
			got := b.carriesOut(b.execution())
			wants(t, got, c.outcome, c.exit, string(c.outcome), c.says)
			f := got.Failure
			if !strings.HasPrefix(f.Type, c.kind) || (f.Type == "") != (c.kind == "") || len(f.Type) > run.MaxType+4 || len(f.Message) > run.MaxMessage+4 {
				t.Errorf("type %q (%d bytes), %d bytes of message", run.Bounded(f.Type, 20), len(f.Type), len(f.Message))
			}
			if told := strings.Contains(f.Message, "exit code"); told != (f.Hint != "") {
				t.Errorf("message %q with the hint %q", f.Message, f.Hint)
			}
		})
	}
	t.Run("never out of a file of the host", func(t *testing.T) {
		secret := filepath.Join(t.TempDir(), "secret")
		must(os.WriteFile(secret, []byte(`{"error":"of the host"}`), 0o600))
		b := newBench(t)
		b.runs(leaves(5, func(io string) { must(os.Symlink(secret, filepath.Join(io, "output.json"))) }))
		wants(t, b.carriesOut(b.execution()), api.CapsuleError, 5, "capsule_error", "exit code 5")
	})
}

func TestTheEnginesWordOnAnEndIsShown(t *testing.T) {
	t.Parallel()
	layout := runtime.OpenLayout(t.TempDir(), "")
	must(os.MkdirAll(filepath.Join(layout.Dir, "io"), 0o700))
	got, err := takeError(runtime.End{ExitCode: 126, EngineError: strings.Repeat("exec format error ", 1000)}, layout, runtime.DefaultLimits())
	if err != nil || !strings.HasPrefix(got.Failure.Message, "the capsule failed with exit code 126: exec format") || len(got.Failure.Message) > run.MaxMessage+100 {
		t.Errorf("%+v, %v", got.Failure, err)
	}
}
