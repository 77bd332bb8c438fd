package cassette

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Player answers from a cassette. It is safe for concurrent use.
type Player struct {
	whose string // of whom alone it is; "": of all
	takes []*take

	mu    sync.Mutex
	known map[string][]*take
	next  map[string]int // which of the equal ones is the next
}

// take is a request with its answer.
type take struct {
	whose   string // for whom alone it is; "": for all
	key     string
	request Request
	body    any // canonical
	answer  Answer
}

func newPlayer() *Player { return &Player{known: map[string][]*take{}, next: map[string]int{}} }

func (p *Player) put(t *take) {
	p.known[t.key] = append(p.known[t.key], t)
	p.takes = append(p.takes, t)
}

// For returns a Player of what was recorded for a run by Recorder.For, and whether there is anything like that: where
// there isn't, for no run, it has all. It has given no answer yet.
func (p *Player) For(whose string) (of *Player, own bool) {
	of = newPlayer()
	own = slices.ContainsFunc(p.takes, func(t *take) bool { return t.whose != "" })
	if own {
		of.whose = whose
	}
	for _, t := range p.takes {
		if t.whose == of.whose {
			of.put(t)
		}
	}
	return of, own
}

// Miss says that a cassette has no answer, or none any more.
type Miss struct {
	Whose   string // for whom alone the answers were to be, and there are none; "": there are some
	Spent   int    // how many equal requests it had, all answered
	Nearest int    // the line of the nearest request, from 1; 0 for none
	Pointer string // where that one differs first
}

func (m *Miss) Error() string {
	switch {
	case m.Whose != "":
		return fmt.Sprintf("the cassette has nothing for %s", m.Whose)
	case m.Spent > 0:
		return fmt.Sprintf("the cassette has %d answers to this request, and all are given", m.Spent)
	case m.Nearest == 0:
		return "the cassette has no request of this dialect for this model"
	}
	return fmt.Sprintf("the cassette has no such request: the nearest, number %d, differs at %s", m.Nearest, m.Pointer)
}

// Next returns the answer to a request: the n-th equal one gets the n-th. The error is a *Miss,
// or says that the body isn't JSON.
func (p *Player) Next(q Request) (Answer, error) {
	body, key, err := q.keyed()
	if err != nil {
		return Answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	equal := p.known[key]
	if n := p.next[key]; n < len(equal) {
		p.next[key]++
		return equal[n].answer, nil
	}
	if len(equal) > 0 {
		return Answer{}, &Miss{Spent: len(equal)}
	}
	return Answer{}, p.miss(q, body)
}

// miss finds the request that differs in the least.
func (p *Player) miss(q Request, body any) *Miss {
	best, miss := 0, &Miss{}
	if len(p.takes) == 0 {
		miss.Whose = p.whose
	}
	for i, t := range p.takes {
		if t.request.Dialect != q.Dialect || t.request.Model != q.Model {
			continue
		}
		d := &difference{}
		d.compare(nil, t.body, body)
		if t.request.Stream != q.Stream {
			d.at([]string{"stream"})
		}
		if miss.Nearest == 0 || d.count < best {
			best, miss = d.count, &Miss{Nearest: i + 1, Pointer: strictjson.Pointer(d.first...)}
		}
	}
	return miss
}

// difference is in how many places two documents differ, and the first of them.
type difference struct {
	count int
	first []string
}

func (d *difference) at(path []string) {
	if d.count == 0 {
		d.first = slices.Clone(path)
	}
	d.count++
}

func (d *difference) compare(path []string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.compareObjects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.compareArrays(path, a, b)
			return
		}
	default:
		if !isContainer(b) && a == b {
			return
		}
	}
	d.at(path)
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (d *difference) compareObjects(path []string, a, b map[string]any) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		va, inA := a[name]
		vb, inB := b[name]
		if !inA || !inB {
			d.at(append(path, name))
			continue
		}
		d.compare(append(path, name), va, vb)
	}
}

func (d *difference) compareArrays(path []string, a, b []any) {
	for i := range max(len(a), len(b)) {
		at := append(path, strconv.Itoa(i)) //nolint:gocritic // the path of this element
		if i >= len(a) || i >= len(b) {
			d.at(at)
			continue
		}
		d.compare(at, a[i], b[i])
	}
}
