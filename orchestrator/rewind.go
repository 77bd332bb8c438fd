package orchestrator

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// rewound says that a run begins at a turn of an earlier one: what that one had come to by then it is given.
type rewound struct {
	Run      string    `json:"run"`
	Turn     int       `json:"turn"`
	Before   time.Time `json:"before"`
	Attempts int       `json:"attempts"` // that the earlier run had
}

// turnOf returns the number of a turn that api.Rerun.From names, 0 where it names something else.
func turnOf(from string) int {
	digits, is := strings.CutPrefix(from, "turn:")
	n, err := strconv.Atoi(digits)
	if !is || err != nil || n < 1 {
		return 0
	}
	return n
}

// rewind returns from where a rerun of an agent goes on. Later turns have to come from the same instructions, tools and
// code, so that the unit's version has to be the same.
func (s *Service) rewind(ctx context.Context, u *unit.Unit, old api.Record, from api.Rerun) (*rewound, error) {
	to := &rewound{Run: old.ID, Turn: turnOf(from.From), Attempts: old.Retries + 1}
	switch {
	case len(from.Set) > 0:
		return nil, fault.New(fault.BadRequest, "nothing can be set before a turn").WithHint("leave `set` out")
	case u.Kind != unit.Capsule:
		return nil, fault.New(fault.Conflict, "%q has no turns: it isn't a capsule", u.Name).
			WithHint("leave `from` out")
	case u.Version != old.Version:
		return nil, fault.New(fault.Conflict,
			"%q has changed since that run: what it asks models may be something else", u.Name).
			WithHint("leave `from` out, or have it be as in version %s", old.Version)
	}
	before, err := rewoundOf(ctx, s.store, old.ID)
	if err != nil {
		return nil, err
	}
	if before != nil && to.Turn < before.Turn {
		return nil, fault.New(fault.Conflict, "that run began itself at turn %d of another one", before.Turn).
			WithHint("aod rerun %s --from %s", before.Run, from.From)
	}
	for _, f := range s.opts.Features {
		if rewinder, ok := f.(feature.Rewinder); ok {
			to.Before, err = rewinder.Turn(s.runPath(old.ID), to.Turn)
			return to, err
		}
	}
	return nil, fault.New(fault.Conflict, "no models are asked here")
}

// inherit gives the parts of a new run what an earlier one had come to.
func (j *job) inherit() error {
	if j.rewound == nil {
		return nil
	}
	for _, part := range j.parts {
		if heir, ok := part.(feature.Heir); ok {
			if err := heir.Inherit(j.loop.runPath(j.rewound.Run), j.rewound.Before); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewoundOf returns from where a run began; nil: from its start, or it isn't known any more.
func rewoundOf(ctx context.Context, runs *store.Store, id string) (*rewound, error) {
	row, err := runs.Runs.Get(context.WithoutCancel(ctx), id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil //nolint:nilnil // see above
	}
	if err != nil {
		return nil, err
	}
	var p private
	if err := json.Unmarshal(row.Private, &p); err != nil {
		return nil, run.Corrupt(err)
	}
	return p.Rewound, nil
}

// eachEarlier calls do for the runs that this one goes on from, the latest first, until it returns false.
func (c *childRuns) eachEarlier(ctx context.Context, do func(*rewound) bool) (err error) {
	for from := c.job.rewound; from != nil && err == nil && do(from); {
		from, err = rewoundOf(ctx, c.store, from.Run)
	}
	return err
}

// recallInherited returns the call of an earlier run that a call is the same as, "" where there is none.
func (c *childRuns) recallInherited(ctx context.Context, call handoff.Call) (id string, err error) {
	walked := c.eachEarlier(ctx, func(from *rewound) bool {
		for attempt := from.Attempts; attempt > 0 && id == "" && err == nil; attempt-- {
			id, err = c.recallFrom(ctx, from.Run, attempt, call, from.Before)
		}
		return id == "" && err == nil
	})
	if err == nil {
		err = walked
	}
	return id, err
}

// isInherited reports whether a run is a call that this one was given.
func (c *childRuns) isInherited(ctx context.Context, record api.Record) (is bool) {
	err := c.eachEarlier(ctx, func(from *rewound) bool {
		is = record.Parent == from.Run && record.CreatedAt.Before(from.Before)
		return !is
	})
	return is && err == nil
}
