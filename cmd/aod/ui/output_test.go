package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// screen is a stream that looks like a terminal, or like a pipe.
func screen(terminal bool) (*Output, *bytes.Buffer) {
	var b bytes.Buffer
	return &Output{Writer: &b, Terminal: terminal, FD: -1}, &b
}

func TestAResultOnATerminalIsTheSameDocument(t *testing.T) {
	document := json.RawMessage(`{"a":"x\u007fy` + "\u009b\u202e\x7f" + `<&>é","n":1e2}`)
	var values []any
	for _, terminal := range []bool{true, false} {
		out, shown := screen(terminal)
		if err := out.JSON(document); err != nil {
			t.Fatal(err)
		}
		if terminal && strings.ContainsAny(shown.String(), "\x7f\u009b\u202e") {
			t.Errorf("a control character came through: %q", shown)
		}
		if lines := strings.Count(shown.String(), "\n"); (lines > 1) != terminal {
			t.Errorf("%d lines, terminal: %v", lines, terminal)
		}
		var value any
		if err := json.Unmarshal(shown.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	one, _ := json.Marshal(values[0])
	other, _ := json.Marshal(values[1])
	if !bytes.Equal(one, other) {
		t.Errorf("%s is not %s", one, other)
	}
}

func TestATerminalGetsNoControlCharactersOfAStranger(t *testing.T) {
	const hostile = "+a\x1b]0;title\x07\tb\r\n\u202e\x9b31m+\u00e9\n"
	for _, c := range []struct {
		terminal bool
		want     string
	}{{false, hostile}, {true, "+a\uFFFD]0;title\uFFFD\tb\uFFFD\n\uFFFD\uFFFD31m+\u00e9\n"}} {
		var got bytes.Buffer
		o := &Output{Writer: &got, Terminal: c.terminal}
		err := o.Foreign(func(w io.Writer) error {
			for i := range len(hostile) { // characters come in pieces
				if _, err := io.WriteString(w, hostile[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || got.String() != c.want {
			t.Errorf("terminal %v: %q, %v", c.terminal, &got, err)
		}
	}
}
