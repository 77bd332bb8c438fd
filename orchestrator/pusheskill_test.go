package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// pushStore names the database for a process that only delivers, and pushTurn is its number.
const pushStore, pushTurn = "AOD_TEST_PUSH_STORE", "AOD_TEST_PUSH_TURN"

// TestADeliveringProcess is a process of the test below, which kills it.
func TestADeliveringProcess(t *testing.T) {
	t.Parallel()
	path := os.Getenv(pushStore)
	if path == "" {
		t.Skip("it isn't a test of its own")
	}
	deliverFrom(context.Background(), openStore(t, path), os.Getenv(pushTurn))
}

func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// deliverFrom delivers as one of several processes that follow one another. Its turn is told as the
// type of each event.
func deliverFrom(ctx context.Context, db *store.Store, turn string) {
	render := func(ctx context.Context, run string, e api.Event) ([]byte, string, error) {
		e.Type = api.EventType(turn)
		return renderForHook(ctx, run, e)
	}
	pushes.New(pushes.OverStore(db.Deliveries), pushes.Render(render).Compose, nearHook()).Run(ctx, db.Deliveries.News())
}

// A process that is killed at any moment leaves nothing out and changes no order. The long form is:
// AOD_KILLS=50 go test -race -run TestNoKillLosesADelivery ./orchestrator
func TestNoKillLosesADelivery(t *testing.T) {
	t.Parallel()
	const runs, events = 4, 60
	seed, _ := strconv.Atoi(cmp.Or(os.Getenv("AOD_SEED"), strconv.Itoa(int(time.Now().UnixNano()%1e9))))
	kills, _ := strconv.Atoi(cmp.Or(os.Getenv("AOD_KILLS"), "4"))
	t.Logf("to be repeated with AOD_SEED=%d AOD_KILLS=%d", seed, kills)
	dice := rand.New(rand.NewPCG(uint64(seed), 0))
	h, path := newHook(t), filepath.Join(t.TempDir(), "aod.db")
	ids := fillWithPushes(t, path, h, runs, events)
	count := func() (n int) {
		for i := range ids {
			n += len(h.told("/" + strconv.Itoa(i)))
		}
		return n
	}
	for kill := range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestADeliveringProcess$")
		child.Env = append(os.Environ(), pushStore+"="+path, pushTurn+"="+strconv.Itoa(kill))
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		least := runs*events*kill/kills + dice.IntN(runs*events/kills)
		within(t, func() bool { return count() >= least }, func() string { return fmt.Sprintf("%d of %d are told", count(), least) })
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	db := openStore(t, path)
	ctx, stop := context.WithCancel(trusted.Context(t))
	done := make(chan struct{})
	go func() { defer close(done); deliverFrom(ctx, db, strconv.Itoa(kills)) }()
	t.Cleanup(func() { stop(); <-done })
	within(t, func() bool { n, err := db.Pushes.Backlog(ctx, store.Owned{}); return err == nil && n == 0 }, func() string { return "something waits for ever" })
	for i, id := range ids {
		wantAllInOrder(t, h.told("/"+strconv.Itoa(i)), id, events)
		all, err := db.Pushes.List(ctx, id)
		if err != nil || len(all) != 1 || all[0].Delivered != events || all[0].Lost != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	}
	t.Logf("%d deliveries of %d events", count(), runs*events)
}

// fillWithPushes makes a store of runs that have events to tell of.
func fillWithPushes(t *testing.T, path string, h *hook, runs, events int) (ids []string) {
	t.Helper()
	db := openStore(t, path)
	for i := range runs {
		id := fmt.Sprintf("0199999%d-aaaa-7bbb-8ccc-dddddddddddd", i)
		c := h.config(strconv.Itoa(i))
		p := store.Push{Run: id, ID: c.ID, URL: c.URL, Host: "canary-hook.example", CreatedAt: time.Now()}
		row := store.Run{ID: id, Unit: "u", Kind: "capsule", Root: id, State: "running", CreatedAt: time.Now(), Record: []byte("{}"), With: []store.WithRun{p}}
		if err := db.Runs.Insert(trusted.Context(t), row, store.Key{}); err != nil {
			t.Fatal(err)
		}
		for range events {
			if err := db.Events.Append(trusted.Context(t), id, newEvent(time.Now(), api.ArtifactEvent{ID: "a"})); err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, id)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// wantAllInOrder finds each event after the one before it; it may come again until the next one. The
// last request of a killed process may be heard when the next process delivers already.
func wantAllInOrder(t *testing.T, told []hookBody, run string, events int64) {
	t.Helper()
	turn := func(b hookBody) int { n, _ := strconv.Atoi(string(b.Type)); return n }
	slices.SortStableFunc(told, func(a, b hookBody) int { return cmp.Compare(turn(a), turn(b)) })
	at := int64(0)
	for _, body := range told {
		if body.Run != run || body.Seq != at && body.Seq != at+1 {
			t.Fatalf("event %d of %s comes after %d", body.Seq, body.Run, at)
		}
		at = body.Seq
	}
	if at != events {
		t.Errorf("of %s it has heard %d events", run, at)
	}
}
