package retention

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// pruneByAge removes what is too old at a time: of a team with an age of its own by that, else by that of all.
func (r *Retention) pruneByAge(ctx context.Context, now time.Time) error {
	var failures []error
	own := r.opts.Ages()
	for team, age := range own {
		_, err := r.prune(ctx, api.PruneOptions{}, store.Old{
			Before: now.Add(-age), Owned: store.Owned{Teams: []string{team}},
		})
		failures = append(failures, err)
	}
	if r.opts.Age > 0 {
		before := now.Add(-r.opts.Age)
		_, err := r.prune(ctx, api.PruneOptions{}, store.Old{Before: before, Except: slices.Sorted(maps.Keys(own))})
		failures = append(failures, err, r.opts.Sessions.Forget(ctx, before))
	}
	return errors.Join(failures...)
}

// pruneBySize removes the oldest runs of the team that takes most, until that takes no more than another one or all
// have room: who keeps little loses nothing to who keeps much.
func (r *Retention) pruneBySize(ctx context.Context) error {
	if r.opts.Bytes <= 0 {
		return nil
	}
	bytes, err := r.opts.Store.Runs.BytesByTeam(ctx)
	if err != nil {
		return err
	}
	teams := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) })
	for team, most := range shares(r.opts.Bytes, teams, bytes) {
		owned := access.WithOwner(ctx, access.Owner{Team: team})
		opts := api.PruneOptions{MaxBytes: max(most, 1)} // 0 would be no bound
		if _, err := r.prune(owned, opts, store.Old{Owned: store.OwnedFor(owned)}); err != nil {
			return err
		}
	}
	return nil
}

// shares returns the most that each team may take whose runs have to give way, so that all together have room: all of
// these have the same, and nobody who takes less gives anything. The teams that take most come first.
func shares(room int64, teams []string, bytes map[string]int64) map[string]int64 {
	var rest int64
	for _, team := range teams {
		rest += bytes[team]
	}
	most := map[string]int64{}
	if rest <= room {
		return most
	}
	for n, team := range teams {
		rest -= bytes[team]
		share := max(0, room-rest) / int64(n+1)
		if n+1 < len(teams) && share < bytes[teams[n+1]] {
			continue // the next one has to give way, too
		}
		for _, giving := range teams[:n+1] {
			most[giving] = share
		}
		break
	}
	return most
}
