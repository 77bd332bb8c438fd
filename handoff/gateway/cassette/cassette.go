// Package cassette keeps answers of models beside the requests that they answer, and finds them again.
//
// KeyOf makes the key of a request: dialect, model and canonical body, in which names are sorted and numbers stay as
// they were written. Recorder.Keep writes an answer as a line of JSON; Read reads all lines; Player.Next gives the n-th
// equal request the n-th answer. A request that isn't there is a *Miss, which names the nearest one that is and where
// the two differ. A line may be for one run of many alone: see Recorder.For and Player.For.
//
// It knows bodies and answers, and makes no connection. It must not know providers.
//
// Its Go API may change with every release: see docs/stability.md.
package cassette

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Answer is an answer as it came: whole, or in the chunks of a stream.
type Answer struct {
	Status int
	Type   string // media type
	Chunks []Chunk
}

// Chunk is a part of an answer. In a cassette it is a text, or Base64 where it is none.
type Chunk []byte

// MarshalJSON implements json.Marshaler.
func (c Chunk) MarshalJSON() ([]byte, error) {
	if utf8.Valid(c) {
		return strictjson.Encode(string(c))
	}
	return strictjson.Encode(map[string]string{"base64": base64.StdEncoding.EncodeToString(c)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Chunk) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = Chunk(text)
		return nil
	}
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(raw, &coded); err != nil {
		return errors.New("a chunk is neither a text nor Base64")
	}
	*c = coded.Base64
	return nil
}

// line is one request with its answer, in the file.
type line struct {
	For     string          `json:"for,omitempty"` // whose it is: see Recorder.For
	Dialect string          `json:"dialect"`
	Model   string          `json:"model"`
	Stream  bool            `json:"stream,omitempty"`
	Request json.RawMessage `json:"request"`
	Status  int             `json:"status"`
	Type    string          `json:"type"`
	Chunks  []Chunk         `json:"chunks"`
}

// Recorder writes a cassette. It is safe for concurrent use.
type Recorder struct {
	*writer
	whose string
}

// writer is where all Recorders of a cassette write.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

// NewRecorder returns a recorder that writes each request with its answer as one line.
func NewRecorder(to io.Writer) *Recorder { return &Recorder{writer: &writer{to: to}} }

// For returns a Recorder of the same cassette for a run that asks the same as others: what it writes is for the run of
// that name alone.
func (r *Recorder) For(whose string) *Recorder { return &Recorder{r.writer, whose} }

// Keep writes a request and its answer.
func (r *Recorder) Keep(q Request, a Answer) error {
	body, err := q.canonical()
	if err != nil {
		return err
	}
	request, err := strictjson.Encode(body)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	raw, err := strictjson.Encode(line{r.whose, q.Dialect, q.Model, q.Stream, request, a.Status, a.Type, a.Chunks})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.to.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// maxLine bounds a line of a cassette, in bytes.
const maxLine = 64 << 20

// Read reads a cassette. An error is an Input fault that names the line.
func Read(file string, from io.Reader) (*Player, error) {
	p := newPlayer()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := p.add(lines.Bytes()); err != nil {
			return nil, fault.New(fault.Input, "%s:%d: it isn't a line of a cassette: %s", file, n, err).
				WithHint("record it anew")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.Input, err, "the cassette %s can't be read behind line %d", file, n).
			WithHint("record it anew")
	}
	return p, nil
}

func (p *Player) add(raw []byte) error {
	if err := strictjson.Check(raw, strictjson.Rules{Ambiguous: true, Unbounded: true}); err != nil {
		return err
	}
	var l line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return errors.New("a field is unknown, or not of its type")
	}
	if l.Status < 200 || l.Status > 599 {
		return errors.New("status is none of HTTP")
	}
	q := Request{l.Dialect, l.Model, l.Stream, l.Request}
	body, key, err := q.keyed()
	if err != nil {
		return err
	}
	p.put(&take{l.For, key, q, body, Answer{l.Status, l.Type, l.Chunks}})
	return nil
}
