package pushes

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/egress"
)

// Render makes the body that tells of an event of a run, and says its media type. Without a body
// nothing is told of the event. It may be called again for the same event.
type Render func(ctx context.Context, run string, event api.Event) (body []byte, kind string, err error)

// Options are the settings of a Deliverer. A zero field has the default that is named with it.
type Options struct {
	Door    *egress.Door   // the way to receivers; one without exceptions
	Roots   *x509.CertPool // that certificates of receivers are held against; the system's
	AtOnce  int            // requests at once; 32
	PerHost int            // of these, to one host; 8
	Timeout time.Duration  // of a request; 10 s
	Tries   int            // of a delivery; 10
	Delay   time.Duration  // before the second try, twice as long before each other; 7 s, for all tries within an hour
	Logger  *slog.Logger   // ids, statuses and times only; nil discards
	// Told is called with what became of each try, and how long that was after its event.
	Told func(r Result, after time.Duration)
}

func (o Options) withDefaults() Options {
	if o.Door == nil {
		o.Door = egress.New(egress.Options{})
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Told == nil {
		o.Told = func(Result, time.Duration) {}
	}
	o.AtOnce, o.PerHost = cmp.Or(o.AtOnce, 32), cmp.Or(o.PerHost, 8)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Tries, o.Delay = cmp.Or(o.Tries, 10), cmp.Or(o.Delay, 7*time.Second)
	return o
}

// delay returns how long to wait after a number of tries: between four and six fifths of what
// doubles each time, so that receivers aren't asked by all at once when they are back.
func (o Options) delay(tries int) time.Duration {
	whole := o.Delay << min(tries-1, 20)
	return whole*4/5 + rand.N(whole*2/5+1) //nolint:gosec // anybody may guess a delay
}
