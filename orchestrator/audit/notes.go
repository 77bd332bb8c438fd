package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// notesFile is where commands leave what they did, below the home of a server; a line each.
const notesFile = "audit.notes"

const (
	maxNotes  = 16 << 20 // bytes
	notesWait = 5 * time.Second
)

// Note is what a command of this machine did without the server.
type Note struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"` // the name of the user
	Verb   string    `json:"verb"`
	Noun   string    `json:"noun"`
	Object string    `json:"object"`
	Detail string    `json:"detail,omitempty"`
}

// Leave leaves a note in the home of a server: it takes it in within a minute, or when it is started. The error is an
// Unavailable fault.
func Leave(home, verb, noun, object, detail string) (err error) {
	defer func() {
		if err != nil {
			err = fault.Wrap(fault.Unavailable, err, "what was done can't be noted in %q for the audit", home).
				WithHint("is the data directory yours, and is there room on its disk?")
		}
	}()
	note := Note{At: time.Now().UTC(), By: userName(), Verb: verb, Noun: noun, Object: object, Detail: detail}
	line, err := json.Marshal(note)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	path := filepath.Join(home, notesFile)
	lock, err := safefs.AwaitLock(path+".lock", notesWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// takeNotes takes in what commands have noted: a note is stored before its file is removed, and one twice rather than
// never.
func (l *Log) takeNotes(ctx context.Context) (err error) {
	l.taking.Lock()
	defer l.taking.Unlock()
	path := filepath.Join(l.opts.Home, notesFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := safefs.AwaitLock(path+".lock", notesWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	file, _, err := safefs.OpenNamed(path)
	if err != nil {
		return err
	}
	defer file.Close()
	raw, err := safefs.ReadAtMost(file, maxNotes)
	if err != nil {
		return err
	}
	if err := l.opts.Rows.Add(ctx, rowsOf(raw)...); err != nil {
		return err
	}
	return os.Remove(path)
}

// rowsOf reads notes. A line that is none, as of a process that died within it, is left out.
func rowsOf(raw []byte) (rows []store.Audited) {
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var n Note
		if json.Unmarshal(lines.Bytes(), &n) != nil || n.Verb == "" {
			continue
		}
		rows = append(rows, store.Audited{
			At: n.At, Identity: "local:" + n.By, Verb: n.Verb, Noun: n.Noun, Object: n.Object, Detail: n.Detail,
			Result: store.Done, Count: 1,
		})
	}
	return rows
}
