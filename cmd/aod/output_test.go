package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// screen is a stream that looks like a terminal, or like a pipe.
func screen(terminal bool) (*ui.Output, *bytes.Buffer) {
	var b bytes.Buffer
	return &ui.Output{Writer: &b, Terminal: terminal, FD: -1}, &b
}

// Whoever reads our output may have enough of it, as in `aod units | head`.
func TestAReaderThatHasGoneIsNoFailure(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	for _, args := range []string{"units", "units --json", "units hello --json", "ps -a", "logs " + fakeID} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		defer writer.Close()
		stderr, told := screen(false)
		a := newApp(strings.NewReader(""), ui.NewOutput(writer), stderr)
		if code := a.run(t.Context(), append(strings.Fields(args), "--server", s.URL)); code != 0 || told.String() != "" {
			t.Errorf("%s: code %d, %s", args, code, told)
		}
	}
}
