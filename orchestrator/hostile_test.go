package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
)

// hostile are results that a capsule may leave to hurt us or by mistake: what the
// user is told, and that it ends as an outcome of the run.
var hostile = []struct {
	name    string
	script  string
	outcome api.Outcome
	exit    int
	says    string
	engine  bool // it takes a real sandbox
}{
	{"no result at all", `true`, api.ContractViolation, 1, "/io/output.json: was not written", false},
	{"a result that isn't JSON", `echo hello > /io/output.json`, api.ContractViolation, 1, "JSON", false},
	{"an empty result", `: > /io/output.json`, api.ContractViolation, 1, "/io/output.json", false},
	{"a result that isn't an object", `echo '[1,2]' > /io/output.json`, api.ContractViolation, 1, "object", false},
	{"two results", `echo '{}{}' > /io/output.json`, api.ContractViolation, 1, "/io/output.json", false},
	{"a result that breaks the contract", `echo '{"n":"x"}' > /io/output.json`, api.ContractViolation, 1, "/io/output.json#/n: expected integer, got string", false},
	{"a result that names a missing file", `echo '{"file":"x"}' > /io/output.json`, api.ContractViolation, 1, `names file "x", which is not in /io/output`, false},
	{"a link to /etc/passwd", `ln -s /etc/passwd /io/output/x; echo '{"file":"x"}' > /io/output.json`, api.ContractViolation, 1, "symbolic link", true},
	{"a link to a directory", `ln -s /etc /io/output/d; echo '{"file":"d/passwd"}' > /io/output.json`, api.ContractViolation, 1, "symbolic link", false},
	{"a directory", `mkdir /io/output/x; echo '{"file":"x"}' > /io/output.json`, api.ContractViolation, 1, "directory", false},
	{"a FIFO", `mkfifo /io/output/x; echo '{"file":"x"}' > /io/output.json`, api.ContractViolation, 1, "FIFO", true},
	{"a socket", `perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0);bind(S,sockaddr_un("/io/output/x")) or die'; echo '{"file":"x"}' > /io/output.json`, api.ContractViolation, 1, "socket", true},
	{"a name that climbs", `echo '{"file":"../output.json"}' > /io/output.json`, api.ContractViolation, 1, `".."`, false},
	{"an absolute name", `echo '{"file":"/etc/passwd"}' > /io/output.json`, api.ContractViolation, 1, "absolute", false},
	{"invalid UTF-8", `printf '{"s":"\xff\xfe"}' > /io/output.json`, api.ContractViolation, 1, "UTF-8", false},
	{"JSON nested 100,000 deep", `perl -e 'print "{\"a\":"x100000,1,"}"x100000' > /io/output.json`, api.ContractViolation, 1, "deep", false},
	{"a result over the limit", `perl -e 'print "{\"a\":\"","x"x(1<<21),"\"}"' > /io/output.json`, api.ContractViolation, 1, "the limit is 1048576", false},
	{"a result that is a link", `echo '{}' > /io/real; ln -s /io/real /io/output.json`, api.ContractViolation, 1, "is a symbolic link, not a regular file", true},
	{"a result that links to /etc/passwd", `ln -s /etc/passwd /io/output.json`, api.ContractViolation, 1, "is a symbolic link, not a regular file", false},
	{"a result that is a FIFO", `mkfifo /io/output.json`, api.ContractViolation, 1, "is a FIFO, not a regular file", false},
	{"a result that is a directory", `mkdir /io/output.json`, api.ContractViolation, 1, "is a directory, not a regular file", false},
	{"2,000 files", `cd /io/output; perl -e 'for(1..2000){open F,">",$_}'; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "holds more than 1000 files", false},
	{"60,000 files", `cd /io/output; perl -e 'for(1..60000){open F,">",$_}'; echo '{}' > /io/output.json`, api.LimitExceeded, -1, "more than", true},
	{"output over the limit", `head -c 3M /dev/zero > /io/output/x; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "more than 2097152 bytes", false},
	{"a sparse giant", `truncate -s 1T /io/output/x || truncate -s 3M /io/output/x; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "more than 2097152 bytes", true},
	{"a tower of directories", `cd /io/output; for i in $(seq 60); do mkdir d; cd d; done; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "nested more than", false},
	{"the output directory replaced by a link", `rmdir /io/output; ln -s /etc /io/output; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "/io/output is a symbolic link", false},
	{"the output directory removed", `rmdir /io/output; echo '{}' > /io/output.json`, api.LimitExceeded, 1, "was removed", true},
	{"a failure with a word about it", `echo '{"error":{"type":"ValueError","message":"no rows"}}' > /io/output.json; exit 3`, api.CapsuleError, 3, "no rows", false},
	{"a result that the bridge refused", `echo '{"error":{"type":"ContractError","message":"output.n must be integer"}}' > /io/output.json; exit 1`, api.ContractViolation, 1, "output.n must be integer", false},
	{"a failure without a word", `exit 4`, api.CapsuleError, 4, "exit code 4", false},
	{"a failure with a hostile word", `ln -s /etc/passwd /io/output.json; exit 5`, api.CapsuleError, 5, "exit code 5", true},
}

func TestHostileResultsAreOutcomes(t *testing.T) {
	t.Parallel()
	const agent = "limits: {output: 2MiB, memory: 256MiB, timeout: 5m}\n" // a busy machine makes 60,000 files slowly
	sandboxed, scripted := newProbe(t, agent), newScripted(t, agent, nil, "bash", "/io/input/script")
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			p := scripted
			if c.engine {
				p = sandboxed
			}
			record := p.run(c.script)
			if record.Outcome != c.outcome || record.ExitCode == nil || c.exit >= 0 && *record.ExitCode != c.exit {
				t.Errorf("outcome %s, want %s with exit code %d\n%s", record.Outcome, c.outcome, c.exit, show(record))
			}
			if p.remote() && c.name == "a socket" { // the engine doesn't pack it
				c.says = "not in /io/output"
			}
			if !strings.Contains(said(record), c.says) {
				t.Errorf("the user is not told %q but:\n%s", c.says, said(record))
			}
			keepsSchema(t, record)
			if record.Output != nil || len(record.Files) > 0 {
				t.Errorf("a failed run delivered something: %s", show(record))
			}
			if _, err := os.Stat(p.out); err == nil {
				t.Error("the output directory was made")
			}
			t.Logf("%s (exit %d): %s", record.Outcome, *record.ExitCode, strings.ReplaceAll(said(record), "\n", " | "))
		})
	}
}

func TestWhatIsNotNamedAndNoFileStaysBehind(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	record := p.run(`cd /io/output
mkdir -p sub loop; echo 1 > sub/a; echo 2 > b; ln -s . loop/loop; ln -s /etc/passwd secret; mkfifo pipe; chmod 0 sub; chmod 4777 b
echo '{"n":1,"file":"b"}' > /io/output.json`)
	if record.Outcome != api.Success {
		t.Fatal(show(record))
	}
	keepsSchema(t, record)
	var names []string
	for _, f := range record.Files {
		names = append(names, f.Name)
		info, err := os.Lstat(filepath.Join(p.out, f.Name))
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: mode %v, %v", f.Name, info.Mode(), err)
		}
	}
	if got := strings.Join(names, " "); got != "b sub/a" {
		t.Errorf("delivered %q", got)
	}
	if len(record.Warnings) != 1 || !strings.Contains(record.Warnings[0], "pipe") || !strings.Contains(record.Warnings[0], "secret") {
		t.Errorf("warnings %q", record.Warnings)
	}
}

// A link in the user's own output directory is a trap that a run must not step into.
func TestDeliveryNeverLeavesTheOutputDirectory(t *testing.T) {
	t.Parallel()
	p := newProbe(t, "")
	outside := t.TempDir()
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(p.out, "sub")); err != nil {
		t.Fatal(err)
	}
	req := p.request(`mkdir /io/output/sub; echo 1 > /io/output/sub/a; echo '{}' > /io/output.json`)
	ended, err := p.o.Run(trusted.Context(t), req)
	record := ended.Record
	if err == nil || record.Outcome != api.SystemError {
		t.Errorf("delivered through a link: %s", show(record))
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("written outside: %v", entries)
	}
	kept, err := os.ReadFile(filepath.Join(ended.KeptAt, "io", "output", "sub", "a"))
	if err != nil || string(kept) != "1\n" {
		t.Errorf("the finished work was lost: %v", err)
	}
}
