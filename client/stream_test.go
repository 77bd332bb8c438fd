package client

import (
	"bufio"
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func FuzzWholeLine(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nhalf"))
	f.Add([]byte("\n\n\r\n"))
	f.Add(bytes.Repeat([]byte("x"), 5000))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		end := bytes.LastIndexByte(raw, '\n') + 1
		var want [][]byte
		for line := range bytes.Lines(raw[:end]) {
			want = append(want, bytes.TrimSuffix(line[:len(line)-1], []byte("\r")))
		}
		lines := bufio.NewScanner(iotest.OneByteReader(bytes.NewReader(raw)))
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLine)
		n := 0
		for ; lines.Scan(); n++ {
			if n >= len(want) || !bytes.Equal(lines.Bytes(), want[n]) {
				t.Fatalf("line %d is %q", n, lines.Bytes())
			}
		}
		if n != len(want) {
			t.Fatalf("%d lines, want %d", n, len(want))
		}
		if cut := end < len(raw); cut != errors.Is(lines.Err(), errCut) {
			t.Fatalf("half a line: %v, error %v", cut, lines.Err())
		}
	})
}
