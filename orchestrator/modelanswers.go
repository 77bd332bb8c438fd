package orchestrator

import (
	"context"
	"path/filepath"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/gateway/cassette"
)

// keptAnswers implements gateway.Answers with files in the directory of a run, a file a key:
// what was answered once is not paid again after a restart. They go with the run's files.
type keptAnswers struct{ job *job }

const (
	answersDir = "answers"
	maxAnswers = 256 << 20 // bytes of all of a run: its disk limit doesn't count them
)

func (k keptAnswers) file(key string) answerFile {
	return answerFileOf(filepath.Join(k.job.Dir, answersDir), key)
}

// Find implements gateway.Answers.
func (k keptAnswers) Find(_ context.Context, key string) (cassette.Answer, string, bool) {
	kept, _, found := k.file(key).read()
	return kept.Answer, kept.Digest, found
}

// Keep implements gateway.Answers. What can't be kept is asked for again.
func (k keptAnswers) Keep(_ context.Context, key, digest string, a cassette.Answer) {
	raw, ok := keptAnswer{digest, a}.encode()
	if !ok || k.job.answered.Add(int64(len(raw))) > maxAnswers {
		return
	}
	if err := k.file(key).write(raw); err != nil {
		k.job.loop.logger.Warn("model answer not kept", "run", k.job.ID, fault.LogAttr(err))
	}
}
