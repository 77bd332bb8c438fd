package web

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// itemCounts are how many items the maps of runs have, as their events tell it. The events of a run, which may be
// many, are read once, however often its page is looked at.
type itemCounts struct {
	mu sync.Mutex
	of map[string]itemsTold // by run
}

// itemsTold are the items of one run's maps, as its events up to one tell it.
type itemsTold struct {
	after int64
	items map[string]int // by address
}

const mostCounted = 100 // runs

func (c *itemCounts) get(run string) itemsTold {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.of[run]
	return itemsTold{told.after, maps.Clone(told.items)}
}

func (c *itemCounts) keep(run string, told itemsTold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= mostCounted {
		c.of = map[string]itemsTold{}
	}
	c.of[run] = told
}

// itemsOf counts the items of a run's maps.
func (p flowPages) itemsOf(ctx context.Context, f *flowRun) error {
	told := p.items.get(f.run.ID)
	if told.items == nil {
		told.items = map[string]int{}
	}
	for e, err := range p.svc.Feed.Past(ctx, f.run.ID, told.after) {
		if err != nil {
			return err
		}
		told.after = e.Seq
		var node api.NodeEvent
		tells := e.Type == api.EventNode && bytes.Contains(e.Data, []byte(`"items"`))
		if tells && json.Unmarshal(e.Data, &node) == nil {
			told.items[node.Address] = node.Items
		}
	}
	p.items.keep(f.run.ID, itemsTold{told.after, maps.Clone(told.items)})
	for address, items := range told.items {
		f.total[flow.NodePath(address)] += items
	}
	return nil
}
