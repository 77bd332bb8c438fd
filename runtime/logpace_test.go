package runtime

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flood is a stream without end that counts what is read of it.
type flood struct {
	text  string
	read  int
	till  time.Time
	bytes int // at most about so many
}

func (f *flood) Read(p []byte) (int, error) {
	if time.Now().After(f.till) || f.read > f.bytes {
		return strings.NewReader("").Read(p)
	}
	n := 0
	for n < len(p) {
		n += copy(p[n:], f.text)
	}
	f.read += n
	return n, nil
}

func TestAFloodIsReadSlowly(t *testing.T) {
	const seconds, enough = 2, 64 << 20
	for name, text := range map[string]string{"long lines": strings.Repeat("x", 1000) + "\n", "no line at all": strings.Repeat("x", 1000), "empty lines": "\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &flood{text: text, till: time.Now().Add(seconds * time.Second), bytes: enough}
				log := NewLog(1<<10, func(LogLine) {})
				log.drain(&Streams{Stdout: f, Stderr: strings.NewReader("")})
				if most := droppedBurst + seconds*droppedRate + 64<<10; f.read > most {
					t.Errorf("%d bytes were read in %d seconds, want at most %d", f.read, seconds, most)
				}
				if waited := log.Waited(); waited < (seconds-1)*time.Second || waited > 2*seconds*time.Second {
					t.Errorf("it tells of %s that were waited", waited)
				}
				if text != "\n" && f.read < seconds*droppedRate {
					t.Errorf("%d bytes were read: the program stalls", f.read)
				}
			})
		})
	}
}

func TestALittleTooMuchIsReadAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		hurry bool
	}{"half a megabyte over the limit": {512 << 10, false}, "what an ended program has left": {64 << 20, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				log := NewLog(10, func(LogLine) {})
				if c.hurry {
					log.pace.hurry()
				}
				log.drain(&Streams{Stdout: strings.NewReader(strings.Repeat(strings.Repeat("x", 1023)+"\n", c.bytes>>10)), Stderr: strings.NewReader("")})
				if took := time.Since(began); took > 0 {
					t.Errorf("the program waited for %v", took)
				}
			})
		})
	}
}
