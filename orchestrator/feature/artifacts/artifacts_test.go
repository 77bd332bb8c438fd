package artifacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store/memory"
	"github.com/agent-on-demand/aod/runtime"
)

// host leads nothing: it hears what is told.
type host struct {
	run.Host
	told []api.EventData
}

func (h *host) WasTold(context.Context, run.Once) (bool, error) { return false, nil }

func (h *host) TellOnce(_ context.Context, _ run.Once, data api.EventData) error {
	h.told = append(h.told, data)
	return nil
}

// newPart is the part of a new run over disks with so much room to be left free.
func newPart(t *testing.T, free int64) (*part, *host) {
	t.Helper()
	f, h := New(), &host{}
	err := f.Init(feature.Process{Events: memory.New().Events, Home: run.Home{Disks: runtime.NewDisks(free, t.TempDir())}})
	if err != nil {
		t.Fatal(err)
	}
	r := &run.Run{ID: "r", Dir: t.TempDir(), Attempt: 1}
	r.LedBy(h, nil)
	p := f.Join(trusted.Context(t), r, nil).(*part)
	p.Open()
	return p, h
}

func text(id string) handoff.Artifact {
	return handoff.Artifact{Part: api.ArtifactEvent{ID: id, Parts: []api.Part{{Text: "x"}}}}
}

func file(t *testing.T, content string) handoff.Artifact {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (handoff.File, error) {
		f, err := os.Open(path)
		return handoff.File{Name: "x", Open: f, Size: int64(len(content))}, err
	}
	return handoff.Artifact{Part: api.ArtifactEvent{ID: "f", Parts: []api.Part{{File: &api.File{Name: "x"}}}}, Open: open}
}

func TestWhatIsTooMuchIsNotShown(t *testing.T) {
	t.Parallel()
	many := map[string]bool{}
	for n := range maxArtifacts {
		many[fmt.Sprint(n)] = true
	}
	for name, c := range map[string]struct {
		shown counts
		file  string
	}{
		"a file over the limit of the output": {file: "12345"},
		"files over the limit":                {counts{size: maxFileBytes}, "1234"},
		"too many files":                      {counts{files: maxFiles}, "1234"},
		"too many bytes":                      {shown: counts{bytes: maxBytes}},
		"too many parts":                      {shown: counts{parts: maxParts}},
		"too many artifacts":                  {shown: counts{ids: many}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, h := newPart(t, 0)
			p.run.Limits.OutputBytes = 4
			show := text("another")
			if c.file != "" {
				show = file(t, c.file)
			}
			allowed := p.counts
			p.counts = c.shown
			if err := p.Artifact(trusted.Context(t), show); !fault.Is(err, fault.TooLarge) || len(h.told) > 0 {
				t.Errorf("%v, told %v", err, h.told)
			}
			p.counts, p.run.Limits.OutputBytes = allowed, 5
			if err := p.Artifact(trusted.Context(t), show); err != nil || len(h.told) != 1 {
				t.Errorf("what is allowed: %v, told %v", err, h.told)
			}
		})
	}
}

func TestNothingIsShownWithoutRoomOrAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]handoff.Artifact{"a text": text("a"), "a file": file(t, "1")} {
		p, h := newPart(t, 1<<60)
		if err := p.Artifact(trusted.Context(t), show); !fault.Is(err, fault.Unavailable) || len(h.told) > 0 {
			t.Errorf("%s without room: %v, told %v", name, err, h.told)
		}
		p, h = newPart(t, 0)
		p.Conclude()
		if err := p.Artifact(trusted.Context(t), show); !fault.Is(err, fault.Conflict) || len(h.told) > 0 {
			t.Errorf("%s after the end: %v, told %v", name, err, h.told)
		}
	}
}

func TestWhatCannotBeOpenedIsNotShown(t *testing.T) {
	t.Parallel()
	p, h := newPart(t, 0)
	gone := errors.New("gone")
	show := text("a")
	show.Open = func() (handoff.File, error) { return handoff.File{}, gone }
	if err := p.Artifact(trusted.Context(t), show); !errors.Is(err, gone) || len(h.told) > 0 {
		t.Errorf("%v, told %v", err, h.told)
	}
}
