package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// memoryTaken tells of a server and of what waits in its pool.
func (b *bench) memoryTaken(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	made := part{table: table{head: []string{"MiB", "resident", "anonymous", "charged"}}}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	if err := made.resident("`aod serve`, just started, without a pool", cold); err != nil {
		return part{}, err
	}
	ask := &asker{server: cold}
	if _, _, failures := crowd(ctx, burstCalls, stocked, ask.do); len(failures) > 0 {
		return part{}, failures[0]
	}
	if err := cold.after(ctx, ask.taken()...); err != nil {
		return part{}, err
	}
	if err := made.resident(fmt.Sprintf("the same after %d runs", burstCalls), cold); err != nil {
		return part{}, err
	}
	return made, b.depths(ctx, &made)
}

// depths are the containers of one pool, before its program is known to ask and after.
func (b *bench) depths(ctx context.Context, made *part) error {
	warm, err := b.stock(ctx, stocked, "", smallUnit)
	if err != nil {
		return err
	}
	if err := made.waiting(ctx, "a container that waits, its init only", warm); err != nil {
		return err
	}
	if err := warm.teach(ctx, smallRun); err != nil {
		return err
	}
	if err := made.waiting(ctx, "a container that waits, Python and the capsule loaded", warm); err != nil {
		return err
	}
	made.notes = []string{fmt.Sprintf("Of a container the least of %d; what they share of the page cache is charged "+
		"to the first.", stocked)}
	return made.resident(fmt.Sprintf("`aod serve` with these %d", stocked), warm.server)
}

func (p *part) resident(name string, s *server) error {
	bytes, err := residentOf(s.cmd.Process.Pid)
	p.table.rows = append(p.table.rows, []string{name, mebibytes(bytes), "", ""})
	return err
}

// waiting adds the container with the least anonymous memory of those that wait.
func (p *part) waiting(ctx context.Context, name string, k *stock) error {
	shelves, err := k.shelves(ctx)
	if err != nil {
		return err
	}
	var least charge
	for i, entry := range shelves[smallUnit].Waiting {
		var taken charge
		if err := taken.read(ctx, entry); err != nil {
			return err
		}
		if i == 0 || taken.anonymous < least.anonymous {
			least = taken
		}
	}
	p.table.rows = append(p.table.rows, []string{name, "", mebibytes(least.anonymous), mebibytes(least.all)})
	return nil
}

// read sets what a waiting container takes now.
func (c *charge) read(ctx context.Context, entry api.PoolSandbox) error {
	pid, err := strconv.Atoi(said(ctx, "docker", "inspect", "--format", "{{.State.Pid}}", entry.Container))
	if err != nil {
		return fmt.Errorf("container %s: no process: %w", entry.Container, err)
	}
	*c, err = chargeOf(pid)
	return err
}
