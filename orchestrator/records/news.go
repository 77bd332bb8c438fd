package records

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// News tells what changes: runs, questions, sessions and units. It is safe for concurrent use.
type News struct {
	feed      *store.Feed
	list      func(ctx context.Context, after int64, limit int) ([]store.FeedRow, bool, error)
	shown     ShownUnit
	names     Named
	followers atomic.Int64

	// What was read last, without a gap, so that all who follow read it once.
	mu     sync.Mutex
	from   int64 // the change before the first of recent
	recent []store.FeedRow
	quiet  <-chan struct{} // until it is closed there is nothing after recent
}

// ShownUnit reports whether the client of ctx may know of a unit of a name that belongs to a team, "" for the
// operator's.
type ShownUnit func(ctx context.Context, name, team string) bool

// Named reports whether a question of an id names the client of ctx as an approver.
type Named func(ctx context.Context, question string) bool

// NewNews returns the News of a feed.
func NewNews(feed *store.Feed, shown ShownUnit, names Named) *News {
	return &News{feed: feed, list: feed.List, shown: shown, names: names}
}

const (
	newsPage   = 500  // that are read at once
	recentNews = 1000 // that are kept for all, at least
	// passedOver is how many changes that a filter leaves out a follower isn't told of before it is told a cursor:
	// when it comes again, it doesn't begin too far back.
	passedOver = 1000
)

// Cursor returns the number of the last change, as Follow yields it. Whoever takes it, then reads lists, and then
// follows what comes after it, misses nothing.
func (n *News) Cursor(ctx context.Context) (int64, error) {
	seq, err := n.feed.Newest(ctx)
	return n.feed.Sealed(seq), err
}

// IsFollowed reports whether somebody follows.
func (n *News) IsFollowed() bool { return n.followers.Load() > 0 }

// Follow yields what changes after the change with the number after, of each thing that the client of ctx may know of
// at least its last change, in order and none twice. Where too much has changed for that, it yields a reset. With
// api.FromNow it begins with a cursor. It ends with an error, also when ctx ends. The numbers are sealed: they tell
// nothing of what others change.
func (n *News) Follow(ctx context.Context, f api.NewsFilter, after int64) iter.Seq2[api.News, error] {
	return func(yield func(api.News, error) bool) {
		n.followers.Add(1)
		defer n.followers.Add(-1)
		err := n.follow(ctx, f, n.seqOf(after), func(one api.News) bool {
			one.Seq = n.feed.Sealed(one.Seq)
			return yield(one, nil)
		})
		if err != nil {
			yield(api.News{}, err)
		}
	}
}

// seqOf returns of which change a number is. One that wasn't given out is as far ahead as none that is kept.
func (n *News) seqOf(number int64) int64 {
	if number <= 0 {
		return number // api.FromNow, or from the first one on
	}
	seq, err := n.feed.Unsealed(number)
	if err != nil {
		return math.MaxInt64
	}
	return seq
}

// follow hands on what changes until nobody takes it, or an error comes.
func (n *News) follow(ctx context.Context, f api.NewsFilter, after int64, hand func(api.News) bool) error {
	t := teller{seen: n.selection(ctx, f), hand: hand, at: after, told: after}
	if after == api.FromNow {
		if more, err := t.begin(ctx, n, api.NewsCursor); !more || err != nil {
			return err
		}
	}
	for {
		changed := n.feed.Changed() // before the look, so that nothing comes between
		rows, whole, err := n.after(ctx, t.at, changed)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case !whole:
			if more, err := t.begin(ctx, n, api.NewsReset); !more || err != nil {
				return err
			}
			continue
		case !t.tell(rows):
			return nil
		case len(rows) > 0:
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// after returns changes after a number: see store.Feed.List. Those who wait for the next one, of which changed tells,
// share what is read.
func (n *News) after(
	ctx context.Context, seq int64, changed <-chan struct{},
) (rows []store.FeedRow, whole bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	newest := n.from
	if len(n.recent) > 0 {
		newest = n.recent[len(n.recent)-1].Seq
	}
	if n.from <= seq && seq < newest || seq == newest && changed != nil && changed == n.quiet {
		first, _ := slices.BinarySearchFunc(n.recent, seq+1, func(r store.FeedRow, seq int64) int {
			return cmp.Compare(r.Seq, seq)
		})
		return n.recent[first:], true, nil
	}
	if rows, whole, err = n.list(ctx, seq, newsPage); err != nil || !whole || seq < n.from {
		return rows, whole, err
	}
	if seq > newest {
		n.from, n.recent = seq, nil
	}
	n.keep(rows)
	if n.quiet = nil; len(rows) < newsPage {
		n.quiet = changed
	}
	return rows, true, nil
}

// keep adds what was read to what is recent.
func (n *News) keep(rows []store.FeedRow) {
	n.recent = append(n.recent, rows...)
	if old := len(n.recent) - recentNews; old > recentNews {
		n.from, n.recent = n.recent[old-1].Seq, slices.Clone(n.recent[old:])
	}
}

// teller tells one follower.
type teller struct {
	seen func(store.FeedRow) (one api.News, seen bool)
	hand func(api.News) bool // reports whether more is wanted
	at   int64               // what the follower has, or doesn't want
	told int64               // the number that it was told last
}

// begin goes to the last change, with word of that. It reports whether more is wanted.
func (t *teller) begin(ctx context.Context, n *News, noun api.NewsNoun) (more bool, err error) {
	if t.at, err = n.feed.Newest(ctx); err != nil {
		return false, err
	}
	t.told = t.at
	return t.hand(api.News{Seq: t.at, Noun: noun}), nil
}

// tell hands on those changes that the follower wants. It reports whether more is wanted.
func (t *teller) tell(rows []store.FeedRow) bool {
	for _, row := range rows {
		t.at = row.Seq
		one, seen := t.seen(row)
		switch {
		case seen:
		case t.at-t.told >= passedOver:
			one = api.News{Seq: t.at, Noun: api.NewsCursor}
		default:
			continue
		}
		t.told = t.at
		if !t.hand(one) {
			return false
		}
	}
	return true
}

// selection is what the client of a context may know of, and wants. To an approver who sees nothing of the run a
// question is of no tree.
func (n *News) selection(ctx context.Context, f api.NewsFilter) func(store.FeedRow) (api.News, bool) {
	return func(row store.FeedRow) (one api.News, seen bool) {
		noun := api.NewsNoun(row.Noun)
		switch {
		case len(f.Nouns) > 0 && !slices.Contains(f.Nouns, noun), f.Root != "" && row.Root != f.Root:
			return one, false
		case f.Roots && noun == api.NewsRun && row.Parent != "":
			return one, false
		case noun == api.NewsUnit:
			return newsOf(row), n.shown(ctx, row.ID, row.Team)
		case access.Sees(ctx, access.Owner{Team: row.Team, By: row.MadeBy}):
			return newsOf(row), true
		case noun != api.NewsQuestion || f.Root != "" || !n.names(ctx, row.ID):
			return one, false
		}
		one = newsOf(row)
		one.Root = ""
		return one, true
	}
}

func newsOf(row store.FeedRow) api.News {
	one := api.News{
		Seq: row.Seq, Noun: api.NewsNoun(row.Noun), ID: row.ID, Unit: row.Unit, Parent: row.Parent, Root: row.Root,
		State: row.State, Outcome: api.Outcome(row.Outcome),
	}
	switch {
	case one.Noun == api.NewsQuestion:
		one.Run, one.Parent = row.Parent, ""
	case one.Noun == api.NewsUnit && row.State != store.Gone:
		one.State = "" // a mark of the store's own
	}
	return one
}
