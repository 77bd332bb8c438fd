package memories

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// partOf is the part of a run with a directory, in a process that keeps what runs say, or doesn't.
func partOf(t *testing.T, dir string, content bool) *part {
	t.Helper()
	f := New(content)
	if err := f.Init(feature.Process{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	r := &run.Run{ID: "r", Dir: dir, Durable: true, Unit: &unit.Unit{}}
	r.Unit.Policy.Transcript = true
	return f.Join(trusted.Context(t), r, nil).(*part)
}

// keep keeps a value, and wants the key to have another from then on, or the same.
func keep(t *testing.T, p *part, key, value, want string) {
	t.Helper()
	got, err := p.Keep(trusted.Context(t), key, json.RawMessage(value))
	if err != nil || string(got) != want {
		t.Fatalf("%q has %s: %v", key, got, err)
	}
	if got, err = p.Recall(trusted.Context(t), key); err != nil || string(got) != want {
		t.Fatalf("%q has %s: %v", key, got, err)
	}
}

func TestAnotherProcessFindsWhatWasKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := partOf(t, dir, true)
	if _, err := p.Recall(trusted.Context(t), "a"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	keep(t, p, "a", `{"n":[1,null]}`, `{"n":[1,null]}`)
	keep(t, p, "a", `2`, `{"n":[1,null]}`)
	keep(t, p, "b\n\x00é", `"\n"`, `"\n"`)
	p = partOf(t, dir, true)
	keep(t, p, "b\n\x00é", `3`, `"\n"`)
	keep(t, p, "c", `4`, `4`)
}

func TestWhatADeadProcessWroteHalfIsWorkedForAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, partOf(t, dir, true), "a", `1`, `1`)
	whole, err := os.ReadFile(fileIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(fileIn(dir), append(whole, whole[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		p := partOf(t, dir, true)
		keep(t, p, "b", `2`, `2`)
		keep(t, p, "a", `3`, `1`)
		p = partOf(t, dir, true)
		keep(t, p, "b", `3`, `2`)
	}
	if err := os.WriteFile(fileIn(dir), append([]byte("damaged\n"), whole...), 0o600); err != nil {
		t.Fatal(err)
	}
	keep(t, partOf(t, dir, true), "a", `3`, `1`)
}

func TestARunKeepsSoMuch(t *testing.T) {
	t.Parallel()
	p := partOf(t, t.TempDir(), true)
	p.run.Durable = false
	for n := range maxValues {
		keep(t, p, fmt.Sprint(n), `1`, `1`)
	}
	_, err := p.Keep(trusted.Context(t), "one more", json.RawMessage(`1`))
	if !fault.Is(err, fault.TooLarge) || fault.Public(err).Hint == "" {
		t.Error(err)
	}
	keep(t, p, "7", `2`, `1`)
	p = partOf(t, t.TempDir(), true)
	large, n := json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), 0
	for ; err != nil && n < 100; n++ {
		if _, full := p.Keep(trusted.Context(t), fmt.Sprint(n), large); full != nil {
			err = full
			break
		}
	}
	if size := p.size; n != 15 || !fault.Is(err, fault.TooLarge) || size > maxBytes {
		t.Errorf("%d values with %d bytes: %v", n, size, err)
	}
}

func TestOfManyAtOnceOneCounts(t *testing.T) {
	t.Parallel()
	p := partOf(t, t.TempDir(), true)
	var all sync.WaitGroup
	var came sync.Map
	for n := range 20 {
		all.Go(func() {
			got, err := p.Keep(trusted.Context(t), "k", json.RawMessage(fmt.Sprint(n)))
			came.Store(string(got), err)
		})
	}
	all.Wait()
	count := 0
	came.Range(func(_, err any) bool { count++; return err == nil })
	if count != 1 {
		t.Errorf("%d values came of one key", count)
	}
}

func TestWhatARunSaysStaysOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, transcript, stays bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		p := partOf(t, t.TempDir(), c.content)
		p.run.Unit.Policy.Transcript = c.transcript
		keep(t, p, "a", `1`, `1`)
		p.Conclude()
		if _, err := os.Stat(fileIn(p.run.Dir)); (err == nil) != c.stays {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAnotherRunIsGivenWhatWasKeptBeforeATime(t *testing.T) {
	t.Parallel()
	old := partOf(t, t.TempDir(), true)
	keep(t, old, "a", `1`, `1`)
	before := time.Now()
	keep(t, old, "b", `1`, `1`)
	p := partOf(t, t.TempDir(), true)
	if err := p.Inherit(old.run.Dir, before); err != nil {
		t.Fatal(err)
	}
	keep(t, p, "a", `2`, `1`)
	keep(t, p, "b", `2`, `2`)
	keep(t, old, "b", `3`, `1`)
	if err := p.Inherit(t.TempDir(), before); err != nil { // of a run that kept nothing
		t.Error(err)
	}
}
