package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Rehearsal takes the place of units and people in a walk: a test of a flow gives it. The
// nodes that it doesn't have are run.
type Rehearsal struct {
	// Nodes has what nodes give instead of a run, by their NodePath: each visit of a node, or
	// each item of a map, takes the next one, and the last one stands for all that follow.
	Nodes map[string][]Played
	// Answers has the answers to questions likewise.
	Answers map[string][]Answer
}

// Played is what a node gives instead of a run: one of the two.
type Played struct {
	Output  map[string]any
	Failure *Failure
}

// Walked is the order in which a walk of a Rehearsal went through the nodes of the flow
// itself. It is safe for concurrent use.
type Walked struct {
	mu   sync.Mutex
	path []string
}

// Path returns the names of the nodes, each as often as it was visited.
func (w *Walked) Path() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.path)
}

// Host returns a host that gives what the rehearsal has, and asks the other one for the rest.
// It notes in walked, which may be nil, where the walk goes.
func (r *Rehearsal) Host(other Host, walked *Walked) Host {
	return rehearsed{Host: other, rehearsal: r, walked: walked}
}

type rehearsed struct {
	Host
	rehearsal *Rehearsal
	walked    *Walked
}

// Call implements Host.
func (h rehearsed) Call(ctx context.Context, c Call) (Result, error) {
	played, ok := nth(h.rehearsal.Nodes[NodePath(c.Address)], c.Address)
	switch {
	case !ok:
		return h.Host.Call(ctx, c)
	case played.Failure != nil:
		failure := *played.Failure
		failure.Node = c.Address
		return Result{}, &CallError{Failure: failure}
	}
	return Result{Output: maps.Clone(played.Output)}, nil
}

// Ask implements Host.
func (h rehearsed) Ask(ctx context.Context, q Question) (Answer, error) {
	answer, ok := nth(h.rehearsal.Answers[NodePath(q.Address)], q.Address)
	if !ok {
		return h.Host.Ask(ctx, q)
	}
	if !slices.Contains(q.Answers, answer.Action) {
		return Answer{}, &CallError{Refused: true, Failure: Failure{
			Node: q.Address, Kind: "answer",
			Message: fmt.Sprintf("%q isn't an answer to the question: it takes %s", answer.Action,
				strings.Join(q.Answers, ", ")),
			Hint: "fix the answers of the test case",
		}}
	}
	return answer, nil
}

// Keep implements Host.
func (h rehearsed) Keep(ctx context.Context, s Step) error {
	if h.walked != nil && s.State != Open && ofFlowItself(s.Address) && (s.State == Skipped || s.Action != "") {
		h.walked.mu.Lock()
		h.walked.path = append(h.walked.path, NodePath(s.Address))
		h.walked.mu.Unlock()
	}
	return h.Host.Keep(ctx, s)
}

// NodePath is the path of nodes in an address, without visits and items: `read/texts` of
// `read#2/texts[3]`.
func NodePath(address string) string {
	parts := strings.Split(address, "/")
	for i, part := range parts {
		if end := strings.IndexAny(part, "#["); end >= 0 {
			parts[i] = part[:end]
		}
	}
	return strings.Join(parts, "/")
}

// nth returns what an address takes of a list: that of its item or its visit, or the last.
func nth[T any](list []T, address string) (given T, ok bool) {
	if len(list) == 0 {
		return given, false
	}
	return list[min(place(address), len(list)-1)], true
}

// place is the number of the last item or visit that an address names, from 0.
func place(address string) int {
	last := address[strings.LastIndex(address, "/")+1:]
	if _, item, found := strings.Cut(last, "["); found {
		n, _ := strconv.Atoi(strings.TrimSuffix(item, "]"))
		return n
	}
	_, visit, _ := strings.Cut(last, "#")
	n, _ := strconv.Atoi(visit)
	return max(n-1, 0)
}
