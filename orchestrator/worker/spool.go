package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// spool is a file of what the server is to have, in its order, until it has it: an item a line.
type spool[T any] struct {
	mu     sync.Mutex
	file   *os.File
	count  int64 // of the items that the file has
	ready  int64 // how many of them may be told; below 0: all
	sent   int64 // how many of them the server has
	offset int64 // where in the file the next one begins
	failed error // the first error: what comes after it is lost
}

// openSpool opens a file with at most so many items, and passes over each that is there; below 0: all of them are. An
// incomplete last one is cut off.
func openSpool[T any](path string, most int64, each func(T)) (*spool[T], error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, run.StorageFault(err)
	}
	s := &spool[T]{file: file, ready: most}
	end := int64(0)
	for reader := bufio.NewReader(file); most < 0 || s.count < most; {
		raw, err := reader.ReadBytes('\n')
		var item T
		if err != nil || json.Unmarshal(raw, &item) != nil {
			break
		}
		each(item)
		s.count++
		end += int64(len(raw))
	}
	_, seeked := file.Seek(end, io.SeekStart)
	if err := errors.Join(file.Truncate(end), seeked); err != nil {
		return nil, errors.Join(run.StorageFault(err), file.Close())
	}
	return s, nil
}

// add appends items, and returns how many there are now. After an error nothing is appended any more.
func (s *spool[T]) add(items ...T) (count int64, err error) {
	var lines []byte
	for _, item := range items {
		raw, err := strictjson.Encode(item)
		if err != nil {
			return 0, err
		}
		lines = append(append(lines, raw...), '\n')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && len(lines) > 0 {
		_, s.failed = s.file.Write(lines)
	}
	if s.failed != nil {
		return s.count, s.failed
	}
	s.count += int64(len(items))
	return s.count, nil
}

// sync returns when what was appended is on the disk.
func (s *spool[T]) sync() error { return run.StorageFault(s.file.Sync()) }

// tells has so many items be told from now on.
func (s *spool[T]) tells(count int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = count
}

// told returns how many items the server has.
func (s *spool[T]) told() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// next returns the items that the server doesn't have, up to about wire.MaxLines bytes of them, and the number of the
// first.
func (s *spool[T]) next() (first int64, some []T, after int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, after = s.sent, s.offset
	reader := bufio.NewReader(io.NewSectionReader(s.file, s.offset, 1<<62))
	for after-s.offset < wire.MaxLines && (s.ready < 0 || first+int64(len(some)) < s.ready) {
		raw, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var item T
		if err = errors.Join(err, json.Unmarshal(raw, &item)); err != nil {
			return first, nil, after, err
		}
		some, after = append(some, item), after+int64(len(raw))
	}
	return first, some, after, nil
}

// took notes that the server has items: those of next up to an offset.
func (s *spool[T]) took(count, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.offset = count, after
}

// goBackTo has the items be told again from a number on.
func (s *spool[T]) goBackTo(count int64) error {
	s.took(0, 0)
	return s.skipTo(count)
}

// skipTo passes over the items that the server has got from an earlier process.
func (s *spool[T]) skipTo(count int64) error {
	for {
		first, some, after, err := s.next()
		if err != nil || len(some) == 0 || first >= count {
			return err
		}
		if first+int64(len(some)) <= count {
			s.took(first+int64(len(some)), after)
			continue
		}
		return nil // some of them come again: the server passes over those that it has
	}
}

func (s *spool[T]) close() {
	if err := s.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		s.failed = err
	}
}
