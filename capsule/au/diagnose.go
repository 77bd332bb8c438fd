package au

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// refused says in our own words why a text that may be JSON is refused.
func refused(bad *strictjson.Error) *OutputError {
	switch bad.Problem {
	case strictjson.ByteOrderMark:
		return misbehaved(OutputByteOrderMark, 0, "its output starts with a byte order mark")
	case strictjson.NotUTF8:
		return misbehaved(OutputNotUTF8, bad.Offset, "its output is not valid UTF-8, from byte %d on", bad.Offset)
	case strictjson.TooDeep:
		return misbehaved(OutputTooDeep, bad.Start, "its JSON is nested more than %d levels deep", strictjson.MaxDepth)
	case strictjson.DuplicateName:
		return misbehaved(OutputAmbiguous, bad.Start, "a field stands twice in one object of its JSON, at byte %d",
			bad.Start)
	case strictjson.HalfSurrogate:
		return misbehaved(OutputAmbiguous, bad.Start,
			"a string in its JSON has half a surrogate pair in it, at byte %d", bad.Start)
	}
	return misbehaved(OutputAmbiguous, bad.Start, "a number in its JSON is larger than a double can hold, at byte %d",
		bad.Start)
}

// diagnose names the reason why a text isn't one JSON document. It guesses, since there is
// no one way to read invalid JSON. Its cost is bounded.
func diagnose(data []byte) *OutputError {
	end, err := firstDocument(data)
	if err == nil && structured(bytes.TrimLeft(data, space)) {
		if documentsOnly(data[end:]) {
			return misbehaved(OutputTwoDocuments, end,
				"it printed more than one JSON document; the first ends at byte %d", end)
		}
		return misbehaved(OutputTextAfter, end, "it printed other text after the JSON document, from byte %d on", end)
	}
	if start := documentAtEnd(data); start > 0 {
		return misbehaved(OutputTextBefore, start,
			"it printed other text before the JSON document, which starts at byte %d", start)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && structured(bytes.TrimLeft(data, space)) {
		return misbehaved(OutputTruncated, len(data), "its JSON document breaks off at byte %d", len(data))
	}
	at := 0
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at = int(max(syntax.Offset-1, 0))
	}
	return misbehaved(OutputNotJSON, at, "its output is not JSON, from byte %d on", at)
}

// firstDocument returns the end of the first document.
func firstDocument(data []byte) (int, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var doc json.RawMessage
	err := dec.Decode(&doc)
	return int(dec.InputOffset()), err
}

// documentsOnly reports whether a text consists of documents only.
func documentsOnly(data []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var doc json.RawMessage
		if err := dec.Decode(&doc); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// documentAtEnd returns the start of an object or array that extends to the end of the
// text, or 0 if none is found. It tries the first of each bracket, and some that start a
// line.
func documentAtEnd(data []byte) int {
	const attempts = 16
	candidates := []int{bytes.IndexByte(data, '{'), bytes.IndexByte(data, '[')}
	for at := nextLineStart(data, 0); at > 0 && len(candidates) < attempts; at = nextLineStart(data, at) {
		candidates = append(candidates, at)
	}
	for _, at := range candidates {
		if at > 0 && json.Valid(data[at:]) {
			return at
		}
	}
	return 0
}

// nextLineStart returns the next bracket after an offset that starts a line, or -1 if there
// is none.
func nextLineStart(data []byte, at int) int {
	for {
		line := bytes.IndexByte(data[at:], '\n')
		if line < 0 {
			return -1
		}
		at += line + 1
		if structured(data[at:]) {
			return at
		}
	}
}
