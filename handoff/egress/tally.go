package egress

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/api"
)

// MaxRows is how many rows a Tally has at most. What has none of its own is counted in the last,
// that of Others.
const MaxRows = 100

// maxStrangers is how many of the rows hosts may take that the list doesn't allow: whoever asks
// for many of them can't hide where it went.
const maxStrangers = MaxRows / 2

// Others is the host of the row for all that have none of their own. Its port is 0.
const Others = "*"

// Tally counts what a run reached, by host and port. The zero Tally is ready; it is safe for
// concurrent use.
type Tally struct {
	mu        sync.Mutex
	rows      []*counter // in the order in which they were met
	strangers int        // rows of hosts that the list doesn't allow
	others    *counter   // nil: each has a row of its own
}

// counter is one row of a Tally.
type counter struct {
	host                      string
	port                      int
	tunnels, in, out, refused atomic.Int64
	told, toldRefused         atomic.Bool // its events were sent
}

// of returns the counter of a host and port, which the list allows or not.
func (t *Tally) of(host string, port int, allowed bool) *counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.rows {
		if c.host == host && c.port == port {
			return c
		}
	}
	if len(t.rows) == MaxRows-1 || !allowed && t.strangers == maxStrangers {
		if t.others == nil {
			t.others = &counter{host: Others}
		}
		return t.others
	}
	if !allowed {
		t.strangers++
	}
	c := &counter{host: host, port: port}
	t.rows = append(t.rows, c)
	return c
}

// Rows returns what was counted so far; nil is nothing.
func (t *Tally) Rows() []api.EgressRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []api.EgressRow
	for _, c := range t.all() {
		rows = append(rows, api.EgressRow{
			Host: c.host, Port: c.port, Tunnels: c.tunnels.Load(), BytesIn: c.in.Load(), BytesOut: c.out.Load(),
			Refused: c.refused.Load(),
		})
	}
	return rows
}

// all returns the rows, that of Others at the end.
func (t *Tally) all() []*counter {
	if t.others == nil {
		return t.rows
	}
	return append(slices.Clip(t.rows), t.others)
}

// Restore puts the rows of an earlier process into an empty Tally.
func (t *Tally) Restore(rows []api.EgressRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range rows[:min(len(rows), MaxRows)] {
		c := &counter{host: row.Host, port: row.Port}
		c.tunnels.Store(row.Tunnels)
		c.in.Store(row.BytesIn)
		c.out.Store(row.BytesOut)
		c.refused.Store(row.Refused)
		c.told.Store(true)
		c.toldRefused.Store(true)
		if row.Host == Others {
			t.others = c
			continue
		}
		if row.Tunnels == 0 {
			t.strangers++
		}
		t.rows = append(t.rows, c)
	}
}
