package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/mask"
	"github.com/agent-on-demand/aod/runtime"
)

var (
	maskTexts   = mask.New()
	maskAnswers = maskTexts.WithoutAddresses()
)

// maskedLog is the log of an attempt, whose secrets may lie across lines.
type maskedLog struct {
	mu      sync.Mutex
	streams map[string]*mask.Lines
}

// Masks reports whether texts of the run are masked before they are stored and shown.
func (r *Run) Masks() bool { return r.Masking != unit.MaskNothing }

// hidden masks the values of a run's own secrets, beside what its unit's policy has masked.
type hidden struct{ texts, output *mask.Masker }

// Hide has values masked in all texts of the run, and in its output, from now on: those of the
// secrets that its program gets.
func (r *Run) Hide(values []string) {
	if len(values) == 0 {
		return
	}
	only := mask.OnlyValues(values...)
	h := &hidden{texts: only, output: only}
	if r.Masks() {
		h.texts = mask.New(values...)
	}
	if r.Masking == unit.MaskTextsAndOutput {
		h.output = h.texts.WithoutAddresses()
	}
	r.hidden.Store(h)
}

// ofTexts is what masks the run's texts; nil: they are shown as they are.
func (r *Run) ofTexts() *mask.Masker {
	switch own := r.hidden.Load(); {
	case own != nil:
		return own.texts
	case r.Masks():
		return maskTexts
	}
	return nil
}

// ofOutput is what masks the run's output; nil: that is shown as it is.
func (r *Run) ofOutput() *mask.Masker {
	switch own := r.hidden.Load(); {
	case own != nil:
		return own.output
	case r.Masking == unit.MaskTextsAndOutput:
		return maskAnswers
	}
	return nil
}

// Masked returns a text of the run as it may be stored and shown.
func (r *Run) Masked(text string) string {
	by := r.ofTexts()
	if by == nil {
		return text
	}
	return by.Text(text)
}

// Pieces masks a text of the run that comes in pieces.
func (r *Run) Pieces() *mask.Pieces { return mask.NewPieces(r.ofTexts()) }

// maskInput puts the input into the record.
func (r *Run) maskInput(input json.RawMessage) {
	r.Record.Input = r.maskedJSON(r.ofTexts(), input)
	r.Record.InputMasked = !bytes.Equal(r.Record.Input, input)
}

// maskedJSON masks the strings of a document; with nil none.
func (r *Run) maskedJSON(by *mask.Masker, document json.RawMessage) json.RawMessage {
	if by == nil || document == nil {
		return document
	}
	masked, err := by.JSON(document)
	if err != nil {
		return json.RawMessage("null") // it isn't JSON, and nothing of it is shown
	}
	return masked
}

// MaskedResult returns the end of an attempt as it may be stored and shown.
func (r *Run) MaskedResult(result Result) Result {
	output, by := result.Output, r.ofOutput()
	if result.Output = r.maskedJSON(by, output); by != nil {
		result.Files = withPointers(by, result.Files, output, result.Output)
	}
	if r.ofTexts() != nil && result.Failure != nil {
		result.Failure = r.maskedFailure(*result.Failure)
	}
	return result
}

func (r *Run) maskedFailure(failure api.RunError) *api.RunError {
	failure.Message, failure.Type, failure.Hint = r.Masked(failure.Message), r.Masked(failure.Type),
		r.Masked(failure.Hint)
	failure.Findings = slices.Clone(failure.Findings)
	for i, finding := range failure.Findings {
		failure.Findings[i] = r.maskedFinding(finding)
	}
	return &failure
}

// maskedFinding also masks what was taken over out of a payload, so that it is found again in
// the message.
func (r *Run) maskedFinding(f fault.Finding) fault.Finding {
	f.Message, f.Hint, f.Foreign = r.Masked(f.Message), r.Masked(f.Hint), r.Masked(f.Foreign)
	if by := r.ofTexts(); by != nil {
		f.File, f.Pointer = by.Text(f.File), maskedPointer(by, f.Pointer)
	}
	return f
}

// MaskedQuestion returns a question as it may be stored and shown.
func (r *Run) MaskedQuestion(q Question) Question {
	q.Text, q.Show = r.Masked(q.Text), r.maskedJSON(r.ofTexts(), q.Show)
	return q
}

// maskedEvent returns an event that isn't a transition as it may be stored and shown.
func (r *Run) maskedEvent(event Event) Event {
	if r.ofTexts() == nil {
		return event
	}
	event.Warning = r.Masked(event.Warning)
	if p := event.Progress; p != nil {
		event.Progress = &handoff.Progress{Percent: p.Percent, Step: r.Masked(p.Step), Message: r.Masked(p.Message)}
	}
	return event
}

// MaskedMessage returns a message to the run as it may be stored and shown, also to its program.
func (r *Run) MaskedMessage(m api.MessageEvent) api.MessageEvent {
	if r.ofTexts() == nil {
		return m
	}
	m.ID, m.Parts, m.Metadata = r.Masked(m.ID), r.maskedParts(m.Parts), r.maskedJSON(r.ofTexts(), m.Metadata)
	return m
}

// MaskedArtifact returns a part of an artifact as it may be stored and shown. Its files stay as
// they are, as those of a result do.
func (r *Run) MaskedArtifact(a api.ArtifactEvent) api.ArtifactEvent {
	if r.ofTexts() == nil {
		return a
	}
	a.ID, a.Name, a.Parts = r.Masked(a.ID), r.Masked(a.Name), r.maskedParts(a.Parts)
	return a
}

func (r *Run) maskedParts(parts []api.Part) []api.Part {
	masked := slices.Clone(parts)
	for i := range masked {
		masked[i].Text, masked[i].Data = r.Masked(masked[i].Text), r.maskedJSON(r.ofTexts(), masked[i].Data)
	}
	return masked
}

// maskedLine returns a line of the log as it may be stored and shown.
func (r *Run) maskedLine(line runtime.LogLine) runtime.LogLine {
	by := r.ofTexts()
	if by == nil {
		return line
	}
	r.maskedLog.mu.Lock()
	defer r.maskedLog.mu.Unlock()
	stream := r.maskedLog.streams[line.Stream]
	if stream == nil {
		stream = mask.NewLines(by)
		if r.maskedLog.streams == nil {
			r.maskedLog.streams = map[string]*mask.Lines{}
		}
		r.maskedLog.streams[line.Stream] = stream
	}
	line.Text = stream.Next(line.Text, line.Cut)
	return line
}

// LogAgain takes a line that an earlier process has kept: what comes next may go on with it.
func (r *Run) LogAgain(line runtime.LogLine) { r.maskedLine(line) }

// EndLog passes on what of an attempt's log was held back until it is known that nothing
// follows.
func (r *Run) EndLog() {
	r.maskedLog.mu.Lock()
	streams := r.maskedLog.streams
	r.maskedLog.streams = nil
	r.maskedLog.mu.Unlock()
	for _, name := range []string{"stdout", "stderr"} {
		if stream := streams[name]; stream != nil {
			if rest := stream.Rest(); rest != "" {
				r.tell(Event{Log: &runtime.LogLine{Time: time.Now(), Stream: name, Text: rest}})
			}
		}
	}
}

// CheckRerun refuses to give the input of a run again that was masked: the true one is gone.
// The error is a Conflict fault.
func CheckRerun(record api.Record) error {
	if !record.InputMasked {
		return nil
	}
	return fault.New(fault.Conflict,
		"the input of this run was masked when it was stored, and the true one is gone since its end").
		WithHint("give the input again as a new run")
}
