package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// answers implements gateway.Answers with files in the directory of a run, a file a key:
// what was answered once is not paid again after a restart. They go with the run's files.
type answers struct{ *account }

const (
	answersDir = "answers"
	maxAnswers = 256 << 20 // bytes of all of a run: its disk limit doesn't count them
)

func (a answers) file(key string) answerFile {
	return answerFileOf(filepath.Join(a.run.Dir, answersDir), key)
}

// Find implements gateway.Answers.
func (a answers) Find(_ context.Context, key string) (cassette.Answer, string, bool) {
	kept, _, found := a.file(key).read()
	return kept.Answer, kept.Digest, found
}

// Keep implements gateway.Answers. What can't be kept is asked for again.
func (a answers) Keep(_ context.Context, key, digest string, answer cassette.Answer) {
	raw, ok := keptAnswer{digest, answer}.encode()
	if !ok || a.answered.Add(int64(len(raw))) > maxAnswers {
		return
	}
	if err := a.file(key).write(raw); err != nil {
		a.logger.Warn("model answer not kept", "run", a.run.ID, fault.LogAttr(err))
	}
}

// answerFile is the path of a file with a model's answer.
type answerFile string

const maxAnswer = 64 << 20 // bytes of one file

type keptAnswer struct {
	Digest string
	Answer cassette.Answer
}

// encode returns what is written of an answer, and whether it is short enough.
func (k keptAnswer) encode() (raw []byte, ok bool) {
	raw, err := json.Marshal(k)
	return raw, err == nil && len(raw) <= maxAnswer
}

// answerFileOf returns the file of a key, of which no letter is trusted.
func answerFileOf(dir, key string) answerFile {
	sum := sha256.Sum256([]byte(key))
	return answerFile(filepath.Join(dir, hex.EncodeToString(sum[:])))
}

// read returns what is in the file, and how long ago it was written.
func (f answerFile) read() (kept keptAnswer, age time.Duration, found bool) {
	file, info, err := safefs.OpenNamed(string(f))
	if err != nil {
		return kept, 0, false
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxAnswer))
	found = err == nil && json.Unmarshal(raw, &kept) == nil
	return kept, time.Since(info.ModTime()), found
}

func (f answerFile) write(raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	return safefs.Replace(string(f), raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true})
}
