package mcp

import (
	"bytes"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/jsonrpc"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// lineDoor stands between a client at stdio and the SDK. The SDK ends at what isn't a message, and changes ids that
// it reads as numbers: it gets messages alone, with ids that are texts.
type lineDoor struct {
	asked asked

	mu      sync.Mutex // of what follows
	out     io.Writer
	opening []byte // the id of the request that opens the session
	batches bool   // the revision of the session has them
}

const (
	lastBatches = "2025-03-26" // the last revision with batches
	maxBatch    = 1000         // messages in one
	largeBatch  = "a batch has 1 to 1000 messages"
)

func newLineDoor(out io.Writer) *lineDoor {
	return &lineDoor{out: out, asked: asked{ids: map[string]int{}, changed: make(chan struct{}, 1)}}
}

// take returns what the SDK reads of a line, which is JSON. What isn't a message is answered here.
func (d *lineDoor) take(line []byte) []byte {
	if bytes.TrimLeft(line, " \t\r")[0] != '[' {
		return append(d.message(envelopeOf(line).withParams()), '\n')
	}
	d.mu.Lock()
	batches := d.batches
	d.mu.Unlock()
	if !batches {
		d.refuse(nil, "a line is one message: this revision of the protocol has no batches")
		return nil
	}
	return d.batch(line)
}

// batch takes the messages of a batch. Its calls stay one, so that their answers are.
func (d *lineDoor) batch(line []byte) []byte {
	count := 0
	var alone, calls []byte
	seen := map[string]bool{}
	for text := range strictjson.Elements(line) {
		if count++; count > maxBatch {
			break
		}
		m, err := jsonrpc.Read(text)
		switch {
		case err == nil && m.IsCall() && seen[string(m.ID)]:
			d.refuse(m.ID, "another request of the batch has this id")
		case err == nil && m.IsCall():
			seen[string(m.ID)] = true
			calls = append(append(calls, ','), d.message(text)...)
		default:
			alone = append(append(alone, d.message(text)...), '\n')
		}
	}
	if count == 0 || count > maxBatch {
		d.refuse(nil, largeBatch)
	}
	if len(calls) > 0 {
		calls[0] = '['
		alone = append(append(alone, calls...), "]\n"...)
	}
	return alone
}

// message is a message for the SDK; nil: it is none.
func (d *lineDoor) message(text []byte) []byte {
	m, err := jsonrpc.Read(text)
	if err != nil {
		if !m.IsComplaint() {
			d.refuse(m.ID, err.Error())
		}
		return nil
	}
	carried, refusal := bounded(m)
	if refusal != nil {
		d.write(refusal)
		return nil
	}
	if m.IsCall() {
		d.asked.add(m.ID, 1)
	}
	if m.Method == "initialize" {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.opening = bytes.Clone(m.ID)
	}
	return carried
}

// refuse answers what isn't a message. Whether the client takes it is found out by the next answer.
func (d *lineDoor) refuse(id []byte, why string) {
	d.write(jsonrpc.Refusal(id, jsonrpc.CodeInvalidRequest, why))
}

func (d *lineDoor) write(refusal []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.Write(append(refusal, '\n'))
}

// Write implements io.Writer: it gets a whole message, or a batch of answers.
func (d *lineDoor) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text []byte
	answered := [][]byte{nil}
	if p[0] == '[' {
		text, answered = restoredBatch(p)
	} else {
		text, answered[0] = jsonrpc.Restored(p)
	}
	if d.opening != nil && bytes.Equal(answered[0], d.opening) {
		d.opening, d.batches = nil, revisionOf(text) == lastBatches
	}
	_, err := d.out.Write(text)
	for _, id := range answered {
		if id != nil {
			d.asked.add(id, -1)
		}
	}
	return len(p), err
}

func restoredBatch(batch []byte) (text []byte, answered [][]byte) {
	for each := range strictjson.Elements(batch) {
		one, id := jsonrpc.Restored(each)
		text, answered = append(append(text, ','), one...), append(answered, id)
	}
	text[0] = '['
	return append(text, "]\n"...), answered
}

// revisionOf returns the revision that the answer to initialize names.
func revisionOf(answer []byte) string {
	for name, result := range strictjson.Members(answer) {
		if name != "result" {
			continue
		}
		for name, value := range strictjson.Members(result) {
			if name == "protocolVersion" {
				return strictjson.Text(value)
			}
		}
	}
	return ""
}

// Close implements io.Closer: whoever gave the writer closes it.
func (*lineDoor) Close() error { return nil }
