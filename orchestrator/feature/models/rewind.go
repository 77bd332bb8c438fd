package models

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// inheritedFile is the cassette of what an earlier run was answered. It goes with the run's end.
const inheritedFile = "inherited.jsonl"

// isTurn reports whether a model has answered something that is no embedding.
func (e exchange) isTurn() bool { return e.isAnswered() && e.Dialect != "embeddings" }

func (e exchange) isAnswered() bool { return e.Status/100 == 2 && e.Rule == "" }

// Turn implements feature.Rewinder. The turn behind the last one begins now.
func (f *Feature) Turn(runDir string, n int) (time.Time, error) {
	turns, lost, began, err := turnsBefore(runDir, n)
	switch {
	case err != nil:
		return began, err
	case turns == 0:
		return began, fault.New(fault.Conflict, "that run has no turns: no model has answered it").
			WithHint("leave `from` out")
	case n > turns+1:
		return began, fault.New(fault.Conflict, "that run has no turn %d: models have answered it %d times", n, turns).
			WithHint("name one from turn:1 to turn:%d", turns+1)
	case lost > 0:
		return began, fault.New(fault.Conflict, "what was asked and answered in turn %d isn't kept", lost).
			WithHint("transcripts are off by `transcript: false` in agent.yaml, or by the setting model_transcripts, " +
				"and hold 16 MiB; leave `from` out")
	case n == turns+1:
		began = time.Now().UTC()
	}
	return began, nil
}

// turnsBefore counts turns, to the n-th at most, and returns when that one began, and the last one before it that isn't
// kept; 0: each is.
func turnsBefore(runDir string, n int) (turns, lost int, began time.Time, err error) {
	_, err = eachExchange(transcriptIn(runDir), func(line exchange) bool {
		if !line.isTurn() {
			return true
		}
		if turns++; turns == n {
			began = line.At
		}
		if turns < n && (line.Request == nil || line.Answer == nil || line.Cut) {
			lost = turns
		}
		return turns < n
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return turns, lost, began, run.StorageFault(err)
}

// Inherit implements feature.Heir: what an earlier run was answered this one is, for the same questions.
func (a *account) Inherit(runDir string, before time.Time) (err error) {
	out, err := os.OpenFile(filepath.Join(a.run.Dir, inheritedFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { err = run.StorageFault(errors.Join(err, out.Close())) }()
	lines, record := map[int64]exchange{}, cassette.NewRecorder(out)
	var failed error
	_, err = eachExchange(transcriptIn(runDir), func(line exchange) bool {
		lines[line.N] = line
		if line.isAnswered() && line.Request != nil && line.Answer != nil && !line.Cut && line.At.Before(before) {
			failed = keepAnswered(record, lines, line)
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err == nil && a.run.Durable {
		err = safefs.Sync(out.Name())
	}
	return err
}

func keepAnswered(record *cassette.Recorder, lines map[int64]exchange, line exchange) error {
	body, err := whole(lines, line)
	if err != nil {
		return err
	}
	given := cassette.Answer{
		Status: line.Status, Type: "application/json", Chunks: []cassette.Chunk{cassette.Chunk(line.Answer)},
	}
	if line.Stream {
		var text string
		if err := json.Unmarshal(line.Answer, &text); err != nil {
			return err
		}
		given.Type, given.Chunks[0] = "text/event-stream", cassette.Chunk(text)
	}
	asked := cassette.Request{Dialect: line.Dialect, Model: line.Model, Stream: line.Stream, Body: body}
	return record.Keep(asked, given)
}

// inherited returns what answers before providers; nil: nothing does.
func (a *account) inherited() *cassette.Player {
	path := filepath.Join(a.run.Dir, inheritedFile)
	file, _, err := safefs.OpenNamed(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a.source.Resume
	}
	var player *cassette.Player
	if err == nil {
		defer func() { _ = file.Close() }() // read only
		player, err = cassette.Read(path, file)
	}
	if err != nil { // models are asked again
		a.logger.Warn("answers of an earlier run can't be read", "run", a.run.ID, fault.LogAttr(err))
	}
	return player
}
