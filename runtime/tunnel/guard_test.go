package tunnel

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const (
	typeWindow = 1
	typeGoAway = 3
	flagSYN    = 1
)

func frame(kind byte, flags uint16, stream, length uint32) []byte {
	header := []byte{0, kind, byte(flags >> 8), byte(flags)}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(header, stream), length)
}

// carryAll carries one far end that says something, hears all and goes on; it returns when
// the near end has had enough.
func carryAll(t *testing.T, frame time.Duration, said func(io.Writer)) {
	t.Helper()
	near, far := net.Pipe()
	l := New(Options{Frame: frame})
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer close(ended)
		l.carry(ctx, near)
	}()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // an honest far end would close as well
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	said(far)
	within(t, "the near end has had enough", ended)
	_, _ = l.Close(), far.Close()
}

func TestADishonestFarEndIsCutOff(t *testing.T) {
	for name, said := range map[string]func(io.Writer){
		"because it pings":                           func(w io.Writer) { _, _ = w.Write(frame(typePing, flagSYN, 0, 1)) },
		"because it answers a ping that nobody sent": func(w io.Writer) { _, _ = w.Write(frame(typePing, 2, 0, 1)) },
		"because it stops amid a header":             func(w io.Writer) { _, _ = w.Write(frame(typeData, flagSYN, 1, 0)[:5]) },
		"because it stops before data":               func(w io.Writer) { _, _ = w.Write(frame(typeData, flagSYN, 1, 100)) },
		"because it stops amid data":                 func(w io.Writer) { _, _ = w.Write(append(frame(typeData, flagSYN, 1, 100), 1)) },
		"because it stops amid data of no stream":    func(w io.Writer) { _, _ = w.Write(append(frame(typeData, 0, 1, 1<<32-1), 1)) },
		"because it drips": func(w io.Writer) {
			_, _ = w.Write(frame(typeData, flagSYN, 1, 1<<17))
			for ticker := time.NewTicker(5 * time.Millisecond); ; <-ticker.C {
				if _, err := w.Write([]byte{1}); err != nil {
					ticker.Stop()
					return
				}
			}
		},
		"because it sends more than a window": func(w io.Writer) {
			_, _ = w.Write(frame(typeData, flagSYN, 1, 1<<20))
			_, _ = w.Write(make([]byte, 1<<20))
		},
		"because it opens a stream twice": func(w io.Writer) {
			_, _ = w.Write(append(frame(typeWindow, flagSYN, 1, 0), frame(typeWindow, flagSYN, 1, 0)...))
		},
		"because it opens streams without an end": func(w io.Writer) {
			for id := uint32(1); ; id += 2 {
				if _, err := w.Write(frame(typeWindow, flagSYN, id, 0)); err != nil {
					return
				}
			}
		},
		"because it goes away with an error": func(w io.Writer) { _, _ = w.Write(frame(typeGoAway, 0, 0, 1)) },
		"because it speaks something else":   func(w io.Writer) { _, _ = io.WriteString(w, "GET / HTTP/1.1\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			carryAll(t, 200*time.Millisecond, said)
		})
	}
}

func TestTheGuardSeesFramesHoweverTheyAreSplit(t *testing.T) {
	honest := bytes.Join([][]byte{
		frame(typeWindow, flagSYN, 1, 0),
		append(frame(typeData, 0, 1, 3), 0, typePing, 0),
		frame(typeData, 0, 1, 0),
		append(frame(typeData, 0, 1, headerSize), frame(typePing, 1, 0, 0)...),
	}, nil)
	for step := 1; step <= len(honest); step++ {
		for _, pinged := range []bool{false, true} {
			var g guard
			said, seen := honest, false
			if pinged {
				said = append(bytes.Clone(honest), frame(typePing, 1, 0, 0)...)
			}
			for ; len(said) > 0 && !seen; said = said[min(step, len(said)):] {
				seen = g.look(said[:min(step, len(said))])
			}
			if seen != pinged || !seen && (g.have != 0 || g.rest != 0) {
				t.Errorf("in steps of %d: pinged %v, want %v (%+v)", step, seen, pinged, g)
			}
		}
	}
}

// FuzzCarry: whatever a far end says and then ends, the near end ends as well.
func FuzzCarry(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(frame(typePing, flagSYN, 0, 1))
	f.Add(append(frame(typeData, flagSYN, 1, 5), "hello"...))
	f.Add(append(frame(typeWindow, flagSYN, 2, 0), frame(typeWindow, 2, 2, 0)...)) // the near end's number
	f.Add(append(frame(typeWindow, flagSYN, 1, 1<<32-1), frame(typeWindow, 4, 1, 1)...))
	f.Add(append(frame(typeWindow, flagSYN, 1, 0), frame(typeWindow, 8, 1, 0)...))
	f.Add(frame(typeGoAway, 0, 0, 0))
	fuzzbound.Run(f, func(t *testing.T, said []byte) {
		near, far := net.Pipe()
		l := New(Options{})
		ended, asked := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			l.carry(context.Background(), near)
		}()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(conn, conn)
					_ = conn.Close()
				}()
			}
		}()
		go func() {
			defer close(asked)
			_, _ = l.Usage(context.Background())
		}()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		_, _ = far.Write(said)
		_ = far.Close()
		within(t, "the near end ends", ended)
		within(t, "the question ends", asked)
		_ = l.Close()
	})
}
