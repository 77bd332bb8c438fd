package main

import (
	"bytes"
	"io"
	"testing"
)

func TestATerminalGetsNoControlCharactersOfAStranger(t *testing.T) {
	const hostile = "+a\x1b]0;title\x07\tb\r\n\u202e\x9b31m+\u00e9\n"
	for _, c := range []struct {
		terminal bool
		want     string
	}{{false, hostile}, {true, "+a\uFFFD]0;title\uFFFD\tb\uFFFD\n\uFFFD\uFFFD31m+\u00e9\n"}} {
		var got bytes.Buffer
		o := &output{Writer: &got, terminal: c.terminal}
		err := o.foreign(func(w io.Writer) error {
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
