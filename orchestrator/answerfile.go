package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/gateway/cassette"
	"github.com/agent-on-demand/aod/safefs"
)

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
