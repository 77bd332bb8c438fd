package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestOfTwoLockersOneHasIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(name)
	must(t, err)
	for _, again := range []func(string) (*LockFile, error){Lock, LockExisting} {
		if _, err := again(name); !errors.Is(err, ErrLocked) {
			t.Errorf("a second locker got %v", err)
		}
	}
	must(t, first.Close())
	second, err := LockExisting(name)
	must(t, err)
	must(t, second.Close())
	if m := mode(t, name); m != 0o600 {
		t.Errorf("mode %v", m)
	}
}

// Who looks whether a lock is held doesn't hold it for others who look.
func TestWhetherALockIsHeld(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	is := func(want bool) {
		t.Helper()
		if held, err := IsLocked(name); held != want || err != nil {
			t.Errorf("held: %v, %v", held, err)
		}
	}
	is(false)
	lock, err := Lock(name)
	must(t, err)
	is(true)
	must(t, lock.Close())
	looking, err := os.Open(name)
	must(t, err)
	defer looking.Close()
	must(t, flock(looking, true))
	is(false)
}

func TestALockThatIsNotThereIsNotMade(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	if _, err := LockExisting(name); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if _, err := os.Lstat(name); err == nil {
		t.Error("it was made")
	}
	if _, err := Lock(filepath.Join(name, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestALockThatIsLetGoIsWaitedFor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	dying, err := Lock(name)
	must(t, err)
	time.AfterFunc(100*time.Millisecond, func() { dying.Close() })
	lock, err := AwaitLock(name, time.Minute)
	must(t, err)
	must(t, lock.Close())
}

// A process that is forked has every open file, until it runs its own program.
func TestALockIsGivenBackWhoeverHasTheFileOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := Lock(name)
	must(t, err)
	forked, err := syscall.Dup(int(lock.file.Fd()))
	must(t, err)
	defer func() { must(t, syscall.Close(forked)) }()
	must(t, lock.Close())
	next, err := Lock(name)
	must(t, err)
	must(t, next.Close())
}

func TestALockThatIsHeldIsWaitedForOnlySoLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(name)
	must(t, err)
	defer held.Close()
	began := time.Now()
	_, err = AwaitLock(name, 50*time.Millisecond)
	if took := time.Since(began); !errors.Is(err, ErrLocked) || took < 50*time.Millisecond {
		t.Errorf("%v after %v", err, took)
	}
}
