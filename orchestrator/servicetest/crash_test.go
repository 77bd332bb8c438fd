package servicetest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// A process may be killed at any time. What the next one finds changes with each commit: from what lies
// on the disk, and runs on the engine, just before and just after each, all comes to the same end.
func TestAKillAtAnyStoredMomentLosesNothing(t *testing.T) {
	t.Parallel()
	all := allScenes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		killAtEachMoment(t, name, all[name])
	}
}

// The same where the sandboxes are at a worker, which dies with its server: here some of the scenes, by `make kill` all.
func TestAKillAtAnyStoredMomentOfAWorkersRunLosesNothing(t *testing.T) {
	t.Parallel()
	all := allScenes()
	delete(all, "pool") // looks into the server's own
	delete(all, "au")   // has a setting that only the server's own sandboxes have
	names := []string{"capsule", "living", "memory", "session"}
	if os.Getenv("AOD_SCENES") != "" {
		names = slices.Sorted(maps.Keys(all))
	}
	for _, name := range names {
		killAtEachMoment(t, name, all[name], far)
	}
}

func allScenes() map[string]func(testing.TB) *scene {
	all := maps.Clone(scenes)
	maps.Copy(all, killScenes)
	return all
}

// killAtEachMoment plays a scene, and goes on from each of its stored moments.
func killAtEachMoment(
	t *testing.T, name string, sceneOf func(testing.TB) *scene, options ...servicetest.Option,
) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		table, s := &crashTable{dir: t.TempDir(), seen: map[[sha256.Size]byte]bool{}}, sceneOf(t)
		h := servicetest.New(t, slices.Concat(s.options, options, []servicetest.Option{servicetest.Set(table.watch)})...)
		if err := table.over(h); err != nil {
			t.Fatal(err)
		}
		s.begin(h)
		if s.learn != nil {
			s.learn(h)
		}
		if s.meanwhile != nil {
			s.meanwhile(h)
		}
		s.goOn(h)
		s.finish(h)
		want := endsOf(h)
		h.NothingLeft()
		if err := table.over(nil); err != nil {
			t.Fatal(err)
		}
		s.found.Store(true)
		for _, m := range table.moments {
			t.Run(m.name, func(t *testing.T) {
				h.TB = t
				known := rootsOf(m.restore(h))
				h.Start()
				s.finish(h)
				got, want := endsOf(h), only(want, known)
				if s.begins {
					got = only(got, known)
				}
				if !cmp.Equal(got, want) && !s.mayEnd(got) {
					t.Errorf("(-without a kill +after it)\n%s", cmp.Diff(want, got))
				}
				h.NothingLeft()
			})
		}
		h.TB = t
	})
}

// crashTable keeps what a process would leave that is killed just before or after a commit.
type crashTable struct {
	dir     string
	moments []moment
	seen    map[[sha256.Size]byte]bool

	mu      sync.Mutex
	harness *servicetest.Harness // nil: nothing is kept
	err     error
}

type moment struct {
	name       string
	home       string // a copy
	containers []keptContainer
	images     []keptImage
}

// watch has the table look at every commit, and programs end at once that have ended before.
func (c *crashTable) watch(s *servicetest.Settings) {
	commits := 0
	s.AroundCommit = func(commit func() error) error {
		commits++
		c.look(fmt.Sprintf("%03d-before", commits))
		err := commit()
		c.look(fmt.Sprintf("%03d-after", commits))
		return err
	}
	for name, program := range s.Programs {
		s.Programs[name] = func(ctx context.Context, box servicetest.Sandbox) int {
			var ended initreport.Report
			if raw, _ := os.ReadFile(box.Path(initreport.Path)); json.Unmarshal(raw, &ended) == nil {
				return ended.ExitCode
			}
			return program(ctx, box)
		}
	}
}

// over has the table look at a harness, or at nothing more.
func (c *crashTable) over(h *servicetest.Harness) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.harness = h
	return c.err
}

// mostTries bounds how often a moment is copied, until nothing changed meanwhile: the writer waits, but
// others go on.
const mostTries = 10

func (c *crashTable) look(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.harness == nil {
		return
	}
	m := moment{name: name, home: filepath.Join(c.dir, name)}
	for range mostTries {
		seen, err := m.list(c.harness)
		if c.seen[seen] && err == nil {
			return
		}
		if err == nil {
			err = m.copy(c.harness.Settings.Home)
		}
		again, failed := m.list(c.harness)
		if err = errors.Join(err, failed); err != nil {
			c.err = errors.Join(c.err, err)
			return
		}
		if seen == again {
			c.seen[seen] = true
			c.moments = append(c.moments, m)
			return
		}
	}
}

// list returns a digest of what there is, and notes the containers and images.
func (m *moment) list(h *servicetest.Harness) (sum [sha256.Size]byte, err error) {
	m.containers, m.images = readContainers(h), readImages(h)
	digest := sha256.New()
	_, _ = digest.Write(servicetest.JSON(m.containers))
	err = eachOf(h.Settings.Home, func(name string, info fs.FileInfo) error {
		_, _ = fmt.Fprintln(digest, name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return [sha256.Size]byte(digest.Sum(nil)), err
}

func (m *moment) copy(home string) error {
	if err := os.RemoveAll(m.home); err != nil {
		return err
	}
	return eachOf(home, func(name string, info fs.FileInfo) error {
		switch {
		case info.IsDir():
			return os.Mkdir(m.home+name, info.Mode().Perm()|0o700)
		case !info.Mode().IsRegular():
			return nil
		}
		return copyFile(home+name, m.home+name, info.Mode().Perm())
	})
}

// eachOf goes through all of a home but what the next process makes anew. What goes away meanwhile isn't
// there.
func eachOf(home string, do func(name string, info fs.FileInfo) error) error {
	return filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, home)
		if err != nil || strings.HasPrefix(name, "/bin/") || strings.HasSuffix(name, "-shm") {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err == nil {
			err = do(name, info)
		}
		return ignoreGone(err)
	})
}

func copyFile(from, to string, perm fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// restore has the next Service find the moment, and returns the runs that are stored.
func (m moment) restore(h *servicetest.Harness) (runs []map[string]any) {
	h.Helper()
	err := os.RemoveAll(h.Settings.Home)
	if err == nil {
		err = os.Rename(m.home, h.Settings.Home)
	}
	if err != nil {
		h.Fatal(err)
	}
	h.Reboot()
	for _, i := range m.images {
		h.Engine.AddImage(runtime.Image{
			ID: i.ID, Tags: i.Tags, Labels: i.Labels, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
		})
	}
	runs = readRows(h)["runs"]
	linkSandboxes(h, runs)
	for _, c := range m.containers {
		switch {
		case !c.hasMounts(): // it was removed while the home was copied
		case c.State == runtime.StatusCreated:
			h.Engine.Adopt(c.ID, c.spec())
		default:
			begun(h, c)
		}
	}
	return runs
}

func (c keptContainer) hasMounts() bool {
	for _, source := range c.Mounts {
		if _, err := os.Stat(source); err != nil {
			return false
		}
	}
	return true
}

// finish has all come to its end, and is judged.
func (s *scene) finish(h *servicetest.Harness) {
	h.Helper()
	finish(h)
	if s.judge != nil {
		s.judge(h)
	}
}

// finish has all come to its end: questions are answered, and sessions are closed.
func finish(h *servicetest.Harness) {
	h.Helper()
	ctx := access.WithServer(context.Background())
	h.Within("all is over", func() bool {
		page, err := h.Service.Questions.List(ctx, questions.Filter{})
		if err != nil {
			h.Fatal(err)
		}
		for _, q := range page.Questions {
			if err := h.Service.Questions.Answer(ctx, q.ID, api.Answer{Action: q.Answers[0], By: "ada"}); err != nil {
				h.Fatal(err)
			}
		}
		return rests(h)
	})
	sessions, err := h.Service.Sessions.List(ctx, turns.Filter{Open: true})
	if err != nil {
		h.Fatal(err)
	}
	for _, s := range sessions.Sessions {
		if _, err := h.Service.Sessions.Close(ctx, s.ID, "enough"); err != nil {
			h.Fatal(err)
		}
	}
	h.Within("all is told and removed", func() bool {
		n, err := backlog(h)
		return err == nil && n == 0 && len(readContainers(h)) == waiting(h)
	})
}

// waiting counts the sandboxes that wait for runs.
func waiting(h *servicetest.Harness) (n int) {
	for _, u := range h.Service.Figures.Pool().Units {
		n += len(u.Waiting)
	}
	return n
}

// mayEnd reports whether a run had to end in another way for the kill.
func (s *scene) mayEnd(ends map[string][]string) bool {
	for _, end := range ends {
		if s.dies != "" && strings.Contains(strings.Join(end, "\n"), s.dies) {
			return true
		}
	}
	return false
}

// rootsOf are the runs that nobody called.
func rootsOf(runs []map[string]any) (ids []string) {
	for _, row := range runs {
		if row["parent"] == "" {
			ids = append(ids, row["id"].(string))
		}
	}
	return ids
}

// endsOf tells what each run that nobody called came to, with those that it called, by its id.
func endsOf(h *servicetest.Harness) map[string][]string {
	h.Helper()
	ends, rows := map[string][]string{}, readRows(h)
	outputs, told := map[any]any{}, map[any]int{}
	for _, row := range rows["outputs"] {
		outputs[row["run"]] = row["data"]
	}
	for _, row := range rows["events"] {
		if row["type"] == string(api.EventEnd) {
			told[row["run"]]++
		}
	}
	for _, row := range rows["runs"] {
		var record api.Record
		if err := json.Unmarshal(servicetest.JSON(row["record"]), &record); err != nil {
			h.Fatal(err)
		}
		if record.Kind == string(unit.Remote) {
			record.Retries = 0 // that an agent elsewhere is asked once more is another attempt
		}
		end := fmt.Sprintf("%s %s %s %s after %d retries, told %d times: %s %s %s", record.Unit, record.Step, record.State,
			record.Outcome, record.Retries, told[row["seq"]], servicetest.JSON(outputs[row["seq"]]),
			servicetest.JSON(record.Changes), servicetest.JSON(record.Error))
		ends[record.Root] = append(ends[record.Root], anID.ReplaceAllString(end, "<id>"))
	}
	for _, end := range ends {
		slices.Sort(end)
	}
	return ends
}

func only(ends map[string][]string, ids []string) map[string][]string {
	some := map[string][]string{}
	for _, id := range ids {
		some[id] = ends[id]
	}
	return some
}
