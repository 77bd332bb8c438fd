package orchestrator

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// holders are the files below a directory that have a text in them.
func holders(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestARunIsRemovedWithAllThatItCalled(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123456789-to-be-forgotten"
	w := newCallFixture(t)
	id := w.submitScript(script{Mark: canary, Calls: []script{{Mark: canary + "-below"}}})
	other := w.await(w.submitScript(script{Mark: "other"})).ID
	w.await(id)
	treeOf := func() []store.Run {
		t.Helper()
		tree, _, err := w.service.store.Runs.Tree(trusted.Context(t), id, 10)
		if err != nil || len(tree) != 2 {
			t.Fatalf("%+v %v", tree, err)
		}
		return tree
	}
	w.await(treeOf()[1].ID) // its caller goes on before it is cleaned up, and then it has its size
	tree := treeOf()
	ctx := access.WithGrant(t.Context(), access.Grant{Name: "ada", Teams: []string{"default"}, Scopes: []access.Scope{access.Admin}})
	refused := func(why string, ctx context.Context, id string, kind fault.Kind) {
		t.Helper()
		if _, err := w.service.Retention.Remove(ctx, id); !fault.Is(err, kind) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("one that isn't there", ctx, other[:35]+"x", fault.NotFound)
	refused("a call", ctx, tree[1].ID, fault.Conflict)
	refused("another team's", access.WithGrant(t.Context(), access.Grant{Teams: []string{"b"}, Scopes: []access.Scope{access.Admin}}), id, fault.NotFound)
	live := w.submitScript(script{Mark: "live", Until: "go"})
	refused("one that goes on", ctx, live, fault.Conflict)
	w.open("go")
	w.await(live)

	again, _, err := w.service.Rerun(trusted.Context(t), id, "", api.Rerun{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Runs.Await(trusted.Context(t), again.ID); err != nil { // it may be cleaned up still
		t.Fatal(err)
	}
	removed, err := w.service.Retention.Remove(ctx, id)
	want := api.RemovedRun{ID: id, Runs: 2, Bytes: tree[0].DiskBytes + tree[1].DiskBytes, HeldBy: []string{again.ID}}
	if diff := cmp.Diff(want, removed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, gone := range tree {
		if _, err := w.service.Runs.Get(trusted.Context(t), gone.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", gone.ID, err)
		}
	}
	if _, err := w.service.Retention.Remove(ctx, again.ID); err != nil {
		t.Fatal(err)
	}
	if found := holders(t, w.opts.Home, canary); len(found) > 0 {
		t.Errorf("it is kept in %q", found)
	}
	if _, err := w.service.Runs.Get(trusted.Context(t), other); err != nil {
		t.Error(err)
	}
	used, err := w.service.Figures.Usage(trusted.Context(t), api.UsageFilter{By: []string{"unit"}})
	if err != nil || len(used) != 1 || used[0].Runs != 6 {
		t.Errorf("%+v %v", used, err)
	}
	log, err := w.service.Audit.List(trusted.Context(t), api.AuditFilter{Object: id})
	if err != nil || len(log.Entries) != 1 || log.Entries[0].Verb != "remove" || log.Entries[0].Identity != "token:ada" {
		t.Errorf("%+v %v", log, err)
	}
}

func TestARunIsRemovedWhileItsCallIsCleanedUp(t *testing.T) {
	t.Parallel()
	cleans := make(chan struct{})
	s := &stage{
		attempt: func(ctx context.Context, a *actor) (run.Result, error) {
			if a.Record.Parent != "" {
				return a.succeed()
			}
			if err := a.begin(); err != nil {
				return run.Result{}, err
			}
			call(ctx, t, a.Calls())
			return a.succeed()
		},
		remove: func(a *actor) error {
			if a.Record.Parent != "" {
				<-cleans
			}
			return nil
		},
	}
	p := newPlays(t, s, func(o *Options) {
		write(t, filepath.Join(o.Sources[0], "worker", "tools.yaml"), "- {name: called, capsule: called}\n")
		for name, content := range workerFiles {
			write(t, filepath.Join(o.Sources[0], "called", name), strings.Replace(content, "name: worker", "name: called", 1))
		}
	})
	record := p.await(p.submit())
	if len(record.Calls) != 1 {
		t.Fatalf("%s called %+v", record.ID, record.Calls)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(cleans) })
	ctx := access.WithGrant(t.Context(), access.Grant{Name: "ada", Scopes: []access.Scope{access.Admin}})
	if removed, err := p.service.Retention.Remove(ctx, record.ID); err != nil || removed.Runs != 2 {
		t.Errorf("%+v %v", removed, err)
	}
}
