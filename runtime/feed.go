package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// MaxFeedBytes is the most that one program gets on a stdin that grows.
const MaxFeedBytes = 256 << 20

// feedName is the file with that stdin. The sandbox can't write to it.
const feedName = "stdin"

// The time between two looks at a program's stdout: a part of what has passed since it wrote or
// was given something, so that one which is left alone costs nothing.
const (
	tailPause     = 500 * time.Microsecond
	longTailPause = 100 * time.Millisecond
	tailPart      = 20
)

// Feed is the stdin of a program in ModeSession: a file that the init copies into the program's
// pipe as it grows. It says how much was given to the program, also to a process that comes
// after one that was killed, and it never waits for the program to read.
type Feed struct {
	f      *os.File
	length int64
}

// OpenFeed opens the program's stdin, and makes it where there is none yet. One process at a
// time may have it open.
func (l Layout) OpenFeed() (*Feed, error) {
	f, err := os.OpenFile(l.path("aod/"+feedName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, unwritable(err)
	}
	feed := &Feed{f: f}
	if err := errors.Join(f.Chmod(0o644), feed.readLength()); err != nil {
		return nil, errors.Join(unwritable(err), f.Close())
	}
	return feed, nil
}

func (f *Feed) readLength() error {
	var head [initreport.FeedHeader]byte
	if _, err := f.f.ReadAt(head[:], 0); errors.Is(err, io.EOF) {
		return nil // it is new
	} else if err != nil {
		return err
	}
	f.length = int64(binary.BigEndian.Uint64(head[:])) //nolint:gosec // Write bounds it
	return nil
}

// Len returns how many bytes were given to the program.
func (f *Feed) Len() int64 { return f.length }

// Stage writes what the program is given next, which doesn't see it before Give. More than
// MaxFeedBytes together are a TooLarge fault.
func (f *Feed) Stage(b []byte) error {
	if f.length+int64(len(b)) > MaxFeedBytes {
		return fault.New(fault.TooLarge, "the program has got %d MiB on its stdin, which is all that one process gets",
			MaxFeedBytes>>20).
			WithHint("begin a new session")
	}
	if _, err := f.f.WriteAt(b, initreport.FeedHeader+f.length); err != nil {
		return unwritable(fmt.Errorf("feed program: %w", err))
	}
	return nil
}

// Give gives the program the n bytes that were staged, maybe by a process that has died since:
// all of them, or none if this process dies before Give returns.
func (f *Feed) Give(n int64) error {
	if n < 0 || f.length+n > MaxFeedBytes {
		return fault.New(fault.Internal, "%d bytes can't be given to a program", n)
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(f.length)+uint64(n)) //nolint:gosec // lengths
	if _, err := f.f.WriteAt(head, 0); err != nil {
		return unwritable(fmt.Errorf("feed program: %w", err))
	}
	f.length += n
	return nil
}

// Close closes the file. The program's stdin stays open.
func (f *Feed) Close() error { return f.f.Close() }

// Tail reads the stdout of a program while it writes that: a Read at the end waits for more. It
// ends with the program.
type Tail struct {
	f     *os.File
	ended <-chan struct{}

	hurry  chan struct{}
	once   sync.Once
	closed chan struct{}
}

// OpenTail returns a Tail that begins at an offset. The program has ended when the channel is
// closed.
func (l Layout) OpenTail(offset int64, ended <-chan struct{}) (*Tail, error) {
	f, err := l.OpenStdout()
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("read stdout: %w", err)
	}
	return &Tail{f: f, ended: ended, hurry: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Read implements io.Reader. After Close it returns os.ErrClosed.
func (t *Tail) Read(b []byte) (int, error) {
	for began := time.Now(); ; {
		over := pause.Over(t.ended) // before the read, which finds all that was written until then
		n, err := t.f.Read(b)
		if n > 0 || len(b) == 0 || err != nil && !errors.Is(err, io.EOF) || over {
			return n, err
		}
		select {
		case <-time.After(min(max(tailPause, time.Since(began)/tailPart), longTailPause)):
		case <-t.hurry:
			began = time.Now()
		case <-t.ended:
		case <-t.closed:
			return 0, os.ErrClosed
		}
	}
}

// Written returns how many bytes the program has written, also those that weren't read yet.
func (t *Tail) Written() (int64, error) {
	info, err := t.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read stdout: %w", err)
	}
	return info.Size(), nil
}

// Hurry tells that the program was given something, and may answer soon.
func (t *Tail) Hurry() {
	select {
	case t.hurry <- struct{}{}:
	default:
	}
}

// Close ends a Read that waits. It may be called again.
func (t *Tail) Close() error {
	var err error
	t.once.Do(func() {
		close(t.closed)
		err = t.f.Close()
	})
	return err
}

// feedOptions are the init's, for a program in ModeSession.
func feedOptions() []string {
	return []string{"-feed", path.Join(aodDir, feedName), "-stdout", path.Join(aodDir, stdoutName)}
}

// makeFeed makes the two files anew, for a process of the program that begins.
func makeFeed(l Layout) error {
	for _, name := range []string{feedName, stdoutName} {
		if err := os.Remove(l.path("aod/" + name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unwritable(err)
		}
	}
	feed, err := l.OpenFeed()
	if err != nil {
		return err
	}
	return errors.Join(feed.Close(), unwritable(writeFile(l.path("aod/"+stdoutName), nil, 0o666)))
}

// HomeDir makes a session's home in a directory of this host: the sandbox's user can write to
// it, and it outlives the container. The parent is closed to other users.
func HomeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return unwritable(err)
	}
	if err := OwnTree(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return unwritable(os.Chmod(dir, 0o777))
}
