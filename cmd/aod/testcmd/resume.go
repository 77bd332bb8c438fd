package testcmd

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// journal is a directory in which a test leaves what it has done, so that one that was killed goes on:
//
//	runs.jsonl     what the test is of, and a line for each run that is over
//	calls-N.jsonl  what models of the variant N were asked, and their answers
//	lock           that one process holds
type journal struct {
	dir  string
	lock *safefs.LockFile
	file *os.File

	mu    sync.Mutex
	known map[runKey]*outcome
}

// runKey names a run of a test.
type runKey struct {
	Variant int    `json:"variant"`
	Case    string `json:"case"`
	N       int    `json:"n"` // from 0
}

// keptRun is a line of runs.jsonl.
type keptRun struct {
	runKey
	Differences []string         `json:"differences,omitempty"`
	NS          time.Duration    `json:"ns"`
	Spent       api.ModelTotal   `json:"spent"`
	Score       *float64         `json:"score,omitempty"`
	Grading     api.ModelTotal   `json:"grading"`
	Answers     runflags.Answers `json:"answers"`
}

// openJournal opens a journal; of "" it is nil, and nothing is kept. The error is an Input fault for a directory that
// has another test, or that another process uses.
func openJournal(dir, test string) (j *journal, err error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // nothing is kept
	}
	j = &journal{dir: dir, known: map[runKey]*outcome{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, cli.NotKept(err, "the test")
	}
	j.lock, err = safefs.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, safefs.ErrLocked) {
		return nil, fault.New(fault.Input, "another test runs with --resume %s", fault.Quote(dir))
	}
	if err == nil {
		j.file, err = safefs.OpenLines(filepath.Join(dir, "runs.jsonl"))
	}
	if err != nil {
		return nil, cli.NotKept(err, "the test")
	}
	if err := j.read(test); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// maxKept bounds a line of a journal, in bytes.
const maxKept = 64 << 20

// read reads what an earlier process has left, which has to be of the same test.
func (j *journal) read(test string) error {
	lines := bufio.NewScanner(j.file)
	lines.Buffer(nil, maxKept)
	if !lines.Scan() {
		return j.write(test)
	}
	var of string
	if json.Unmarshal(lines.Bytes(), &of) != nil || of != test {
		return fault.New(fault.Input, "--resume %s has runs of another test: of another unit, cases or flags",
			fault.Quote(j.dir)).WithHint("name another directory, or remove this one")
	}
	for lines.Scan() {
		var k keptRun
		if json.Unmarshal(lines.Bytes(), &k) == nil {
			j.known[k.runKey] = &outcome{k.Differences, k.NS, k.Spent, k.Score, k.Grading, k.Answers}
		}
	}
	return lines.Err()
}

// get returns what came of a run; nil: it isn't over.
func (j *journal) get(key runKey) *outcome {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[key]
}

// put keeps what came of a run.
func (j *journal) put(key runKey, o outcome) error {
	if j == nil {
		return nil
	}
	return j.write(keptRun{key, o.differences, o.took, o.spent, o.score, o.grading, o.answers})
}

func (j *journal) write(line any) error {
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(raw, '\n')); err != nil {
		return cli.NotKept(err, "the test")
	}
	return nil
}

// calls is where the calls of a variant are kept; "": nowhere.
func (j *journal) calls(variant int) string {
	if j == nil {
		return ""
	}
	return filepath.Join(j.dir, fmt.Sprintf("calls-%d.jsonl", variant))
}

func (j *journal) close() {
	if j != nil {
		_ = errors.Join(j.file.Close(), j.lock.Close()) // nothing is written any more
	}
}

// testOf is the digest of all that makes a test what it is: what is kept of another one doesn't count.
func testOf(all []variant, cases []capsule.Case, flags testFlags) (string, error) {
	of := []any{cases, flags.repeat, flags.given, flags.sources.Models.File}
	for _, v := range all {
		of = append(of, v.label, v.model, unit.Of(v.c).Version)
	}
	raw, err := json.Marshal(of)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}
