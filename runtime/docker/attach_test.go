package docker

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func frame(stream byte, size uint32, text string) []byte {
	header := make([]byte, frameHeader)
	header[0] = stream
	binary.BigEndian.PutUint32(header[4:], size)
	return append(header, text...)
}

func TestFramesAreTakenApart(t *testing.T) {
	whole := func(stream byte, text string) []byte { return frame(stream, uint32(len(text)), text) }
	for name, c := range map[string]struct {
		in             [][]byte
		stdout, stderr string
		kind           fault.Kind
		fails          bool
	}{
		"in turns":                   {[][]byte{whole(1, "a"), whole(2, "b"), whole(1, ""), whole(1, "c")}, "ac", "b", 0, false},
		"stdin's number is stdout":   {[][]byte{whole(0, "a")}, "a", "", 0, false},
		"a header cut short":         {[][]byte{whole(1, "a"), {1, 0, 0}}, "a", "", fault.Unavailable, true},
		"a frame cut short":          {[][]byte{frame(1, 10, "a")}, "a", "", fault.Unavailable, true},
		"a frame that claims 4 GiB":  {[][]byte{frame(2, 1<<32-1, "b")}, "", "b", fault.Unavailable, true},
		"the engine's own error":     {[][]byte{whole(1, "a"), whole(3, "secret")}, "a", "", fault.Internal, true},
		"an error that claims 4 GiB": {[][]byte{frame(3, 1<<32-1, "secret")}, "", "", fault.Internal, true},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := copyFrames(&stdout, &stderr, bytes.NewReader(bytes.Join(c.in, nil)))
			if stdout.String() != c.stdout || stderr.String() != c.stderr {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
			if (err != nil) != c.fails || (c.fails && fault.KindOf(err) != c.kind) {
				t.Errorf("error %v", err)
			}
			if err != nil && strings.Contains(fault.Public(err).Msg, "secret") {
				t.Error("the engine's words are shown")
			}
		})
	}
}

func TestCloseUnblocksAWriterWithoutAReader(t *testing.T) {
	conn, writer := io.Pipe()
	streams := demultiplex(conn)
	go func() {
		for {
			if _, err := writer.Write(frame(2, 1, "x")); err != nil {
				return
			}
		}
	}()
	if err := streams.Close(); err != nil {
		t.Error(err)
	}
	for _, r := range []io.Reader{streams.Stdout, streams.Stderr} {
		if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
			t.Errorf("read %q, %v", text, err)
		}
	}
}

func FuzzCopyFrames(f *testing.F) {
	f.Add(frame(1, 1, "a"))
	f.Add(append(frame(2, 3, "abc"), frame(1, 1<<32-1, "x")...))
	f.Add(frame(3, 5, "error"))
	fuzzbound.Run(f, func(t *testing.T, b []byte) {
		var stdout, stderr bytes.Buffer
		_ = copyFrames(&stdout, &stderr, bytes.NewReader(b))
		if stdout.Len()+stderr.Len() > len(b) {
			t.Errorf("%d bytes became %d", len(b), stdout.Len()+stderr.Len())
		}
	})
}
