// Package swarm knows the nodes of a Docker Swarm, and which of them has which worker.
//
//	Swarm.Watch     looks at the nodes every few seconds; the last view stays while the Swarm doesn't answer
//	Swarm.Join      names the worker of a node that enrols with what all nodes have
//	Swarm.Leaves    tells a node that is drained or removed from a worker that is updated
//	Swarm.State     what keeps a node from taking runs; Swarm.Labels what it has
//
// A node has one worker, with the node's host name as the managers tell it. It must not know Docker, nor requests.
//
// Its Go API may change with every release: see docs/stability.md.
package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime"
)

// Options are what a Swarm needs.
type Options struct {
	Nodes  func(context.Context) ([]runtime.Node, error) // asks a manager
	File   string                                        // which nodes have which workers; it need not be there
	Logger *slog.Logger
}

// Swarm knows the nodes. It is safe for concurrent use.
type Swarm struct {
	opts    Options
	looking sync.Mutex // one looks at a time; and what follows from that

	mu    sync.Mutex
	view  map[string]runtime.Node // by their ids; nil: not known yet
	kept  map[string]member       // by the ids of nodes
	asked map[string]time.Time    // when a node enrolled last
}

// member is what a node has.
type member struct {
	Worker  string `json:"worker"`
	Removed bool   `json:"removed,omitempty"` // by a person: it stays out until it is invited
}

// document is the content of the file.
type document struct {
	Nodes map[string]member `json:"nodes"`
}

const (
	every    = 2 * time.Second // between two looks
	lookTime = 2 * time.Second // the longest that one takes: a worker that leaves waits for it
	again    = time.Second     // between two enrolments of a node
	maxFile  = 1 << 20         // bytes
	maxNodes = 10_000
)

// New reads the file. The error is an Unavailable fault of one that can't be read.
func New(opts Options) (*Swarm, error) {
	s := &Swarm{opts: opts, kept: map[string]member{}, asked: map[string]time.Time{}}
	raw, err := safefs.ReadNamed(opts.File, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	var kept document
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%q can't be read, which has the workers of nodes", opts.File).
			WithHint("bring back an earlier file; without it nodes get other workers, and those join again that were " +
				"removed")
	}
	if kept.Nodes != nil {
		s.kept = kept.Nodes
	}
	return s, nil
}

// Look asks for the nodes, and returns whether what counts of them has changed. With an error the last view stays.
func (s *Swarm) Look(ctx context.Context) (changed bool, err error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	nodes, err := s.opts.Nodes(ctx)
	if err != nil {
		return false, err
	}
	view := map[string]runtime.Node{}
	for _, n := range nodes[:min(len(nodes), maxNodes)] {
		view[n.ID] = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.view == nil || !maps.EqualFunc(view, s.view, func(a, b runtime.Node) bool {
		return a.Availability == b.Availability && a.Ready == b.Ready && maps.Equal(a.Labels, b.Labels)
	})
	s.view = view
	return changed, nil
}

// Watch looks until ctx ends, and calls changed after what counts.
func (s *Swarm) Watch(ctx context.Context, changed func()) {
	blind := false
	for {
		is, err := s.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !blind:
			s.opts.Logger.Warn("nodes of the swarm not known, the last view stays", fault.LogAttr(err))
		case err == nil && blind:
			s.opts.Logger.Info("nodes of the swarm known again")
		}
		if blind = err != nil; is {
			changed()
		}
		if pause.For(ctx, every) != nil {
			return
		}
	}
}

// Join returns the name of a node's worker, and keeps it. A node that the Swarm doesn't have, or that isn't ready, is a
// Forbidden fault, and so is one whose worker a person has removed. taken are names that others have.
func (s *Swarm) Join(ctx context.Context, id string, taken func(name string) bool) (string, error) {
	if !s.isReady(id) {
		if _, err := s.Look(ctx); err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "the Swarm doesn't tell its nodes").
				WithHint("try again in a moment")
		}
	}
	if !s.isReady(id) {
		return "", fault.New(fault.Forbidden, "the Swarm of this server has no node %s that is ready", fault.Quote(id)).
			WithHint("`docker node ls` on a manager; a machine outside of the Swarm joins by `aod worker add NAME`")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	node, has := s.kept[id]
	if has && node.Removed {
		return "", fault.New(fault.Forbidden, "the worker %q of this node was removed", node.Worker).
			WithHint("`aod worker add %s` at the server lets the node join again", node.Worker)
	}
	now := time.Now()
	if now.Sub(s.asked[id]) < again {
		return "", fault.New(fault.Busy, "the node has enrolled just now").WithHint("try again in a second")
	}
	s.asked[id] = now
	if has {
		return node.Worker, nil
	}
	name := nameOf(s.view[id].Hostname)
	if taken(name) || s.holderOf(name) != "" {
		name += "-" + id[:min(len(id), 8)]
	}
	return name, s.keep(id, member{Worker: name})
}

func (s *Swarm) isReady(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view[id].Ready
}

var otherThanName = lazyregexp.New(`[^a-z0-9._-]+`)

// nameOf makes a worker's name of a host's. There is room for the beginning of an id.
func nameOf(host string) string {
	name := strings.TrimLeft(otherThanName().ReplaceAllString(strings.ToLower(host), "-"), "._-")
	if name = name[:min(len(name), 54)]; name == "" {
		return "node"
	}
	return name
}

// keep stores what a node has; a zero member: nothing. It is called with the lock held.
func (s *Swarm) keep(id string, m member) error {
	kept := maps.Clone(s.kept)
	if kept[id] = m; m.Worker == "" {
		delete(kept, id)
	}
	raw, err := json.Marshal(document{kept})
	if err == nil {
		err = safefs.Replace(s.opts.File, raw, safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true})
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%q can't be written, which has the workers of nodes", s.opts.File)
	}
	s.kept = kept
	return nil
}

// Remove has the node of a worker stay out, until Invite. It is no node's: nothing happens.
func (s *Swarm) Remove(worker string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.holderOf(worker)
	if id == "" {
		return nil
	}
	if _, is := s.view[id]; !is && s.view != nil { // its id never comes again
		return s.keep(id, member{})
	}
	return s.keep(id, member{Worker: worker, Removed: true})
}

// Invite has the node of a worker that was removed join again.
func (s *Swarm) Invite(worker string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.holderOf(worker)
	if id == "" || !s.kept[id].Removed {
		return nil
	}
	return s.keep(id, member{Worker: worker})
}

// IsRemoved reports whether the node of a worker stays out.
func (s *Swarm) IsRemoved(worker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[s.holderOf(worker)].Removed
}

// holderOf returns the node that has a worker; "": none. It is called with the lock held.
func (s *Swarm) holderOf(worker string) string {
	for id, m := range s.kept {
		if m.Worker == worker {
			return id
		}
	}
	return ""
}

// nodeOf returns the node of a worker: that which has enrolled as it, else the one that it tells itself.
func (s *Swarm) nodeOf(worker, told string) (n runtime.Node, known bool, id string) {
	if id = s.holderOf(worker); id == "" {
		id = told
	}
	n, known = s.view[id]
	return n, known, id
}

// Gone is the State of a node that was removed from the Swarm. The others are Docker's words.
const Gone = "gone"

// State returns what keeps the node of a worker from taking runs: "drain", "pause" or Gone; "": nothing that is known.
// told is the node that the worker tells, which counts where it hasn't enrolled as a node.
func (s *Swarm) State(worker, told string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n, known, id := s.nodeOf(worker, told); {
	case id == "" || s.view == nil || known && n.Availability == "active":
		return ""
	case !known:
		return Gone
	default:
		return n.Availability
	}
}

// Leaves asks the Swarm whether the node of a worker is to be emptied: it is drained, or removed. Without an answer it
// goes by the last view.
func (s *Swarm) Leaves(ctx context.Context, worker, told string) bool {
	if _, err := s.Look(ctx); err != nil {
		s.opts.Logger.Warn("a worker ends, and the swarm doesn't tell why", "worker", worker, fault.LogAttr(err))
	}
	state := s.State(worker, told)
	return state == "drain" || state == Gone
}

// Labels are those of the node of a worker that can be a worker's, sorted: a key without a value alone, else
// "key=value".
func (s *Swarm) Labels(worker, told string) (labels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _, _ := s.nodeOf(worker, told)
	for key, value := range n.Labels {
		label := key
		if value != "" {
			label += "=" + value
		}
		if api.CheckLabel(label) == nil && len(labels) < maxLabels {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}

const maxLabels = 64 // of a node
