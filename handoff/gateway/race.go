package gateway

import (
	"context"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// racers are how many providers a race asks at once. Each is paid for, and a third one would seldom be the first.
const racers = 2

// lane is a provider in a race, with a call and a bill of its own.
type lane struct {
	providers
	route  route
	stop   context.CancelFunc
	up     *upstream // the answer, if it has begun
	failed *failure  // else
}

// races reports whether providers are asked at once. What a script answers in their place is taken once.
func (p *providers) races() bool {
	return p.target.model.Order == catalog.Race && len(p.target.routes) >= racers && p.session.Script == nil
}

// race asks the first providers at once. The one whose answer begins first gives it; the other one is cancelled, and
// charged for in full if the request was sent. It did nothing where the budgets have no room for both at the moment.
func (p *providers) race(ctx context.Context) (up *upstream, f *failure, raced bool) {
	lanes, err := p.lanes(ctx)
	if err != nil {
		return nil, &failure{refusal: refusalOf(err), next: nobody}, true
	}
	if lanes == nil {
		return nil, nil, false
	}
	ends := make(chan *lane, len(lanes))
	for _, l := range lanes {
		var own context.Context
		own, l.stop = context.WithCancel(ctx) // the winner's ends with the request
		go func() {
			l.run(own, len(p.target.routes)-1)
			ends <- l
		}()
	}
	var won *lane
	for range lanes {
		if l := <-ends; won == nil && l.up != nil {
			won = l
			stopOthers(lanes, won)
		}
	}
	up, f = p.join(ctx, lanes, won)
	return up, f, true
}

// lanes sets the worst aside for all racers; nil: there is no room for more than the first one.
func (p *providers) lanes(ctx context.Context) ([]*lane, error) {
	first, rival := p.lane(p.target.routes[0], false), p.lane(p.target.routes[1], true)
	if err := first.bill.reserve(ctx); err != nil {
		return nil, err
	}
	if rival.bill.reserve(ctx) != nil {
		p.bill.hold = first.bill.hold
		return nil, nil //nolint:nilerr // in its turn it may have room
	}
	return []*lane{first, rival}, nil
}

func (p *providers) lane(r route, beside bool) *lane {
	l, meta, own := &lane{providers: *p, route: r}, *p.meta, *p.bill
	meta.Again, meta.Beside = beside, beside
	own.call = &meta
	l.meta, l.bill = &meta, &own
	l.goTo(r)
	return l
}

// run asks the lane's provider. Nobody else would catch a panic here.
func (l *lane) run(ctx context.Context, left int) {
	err := httpwire.Catch(func() error {
		l.up, l.failed = l.askOne(ctx, l.route, left)
		return nil
	})
	if err != nil {
		l.failed = &failure{refusal: refusalOf(err), next: nobody}
	}
}

func stopOthers(lanes []*lane, won *lane) {
	for _, l := range lanes {
		if l != won {
			l.stop()
		}
	}
}

// join goes on as the winner, with what all have spent. Without a winner the failure is one that no other provider
// would mend, else the last one; then a hold of which nothing was spent is kept for the next provider.
func (p *providers) join(ctx context.Context, lanes []*lane, won *lane) (up *upstream, f *failure) {
	for _, l := range lanes {
		p.attempts += l.attempts
		if l == won {
			continue
		}
		l.lose(ctx)
		if won != nil && l.attempts > 0 {
			p.raced = l.route.use.Provider
		}
		if f == nil || f.next != nobody {
			f = l.failed
		}
		if won == nil && p.bill.hold == nil {
			p.bill.hold, l.bill.hold = l.bill.hold, nil
		}
		l.bill.giveBack(ctx)
		p.bill.addUp(l.bill.spent)
	}
	if won == nil {
		p.meta.Again = p.bill.hold == nil // all of them were charged for
		return nil, f
	}
	p.server, p.bill.hold = won.server, won.bill.hold
	p.bill.addUp(won.bill.spent)
	p.goTo(won.route)
	return won.up, nil
}

// lose ends a lane, and charges for an answer that had begun, too.
func (l *lane) lose(ctx context.Context) {
	l.stop()
	if l.up != nil {
		l.bill.settle(ctx, l.bill.charge(&l.up.meter))
		l.up.close()
	}
}
