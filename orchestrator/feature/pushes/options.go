package pushes

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/egress"
)

// Message is what a request to a receiver has, beside what the receiver wants to be shown.
type Message struct {
	Body   []byte
	Kind   string // the body's media type
	Header http.Header
}

// Compose makes the message of a delivery, for one request: it is called again for the next try. Without a body nothing
// is told of the event.
type Compose func(ctx context.Context, d Delivery) (Message, error)

// Render makes the body that tells of an event of a run, and says its media type. Without a body
// nothing is told of the event. It may be called again for the same event.
type Render func(ctx context.Context, run string, event api.Event) (body []byte, kind string, err error)

// Compose is a Compose of what clients of runs named, where the same event has the same key each time.
func (r Render) Compose(ctx context.Context, d Delivery) (Message, error) {
	body, kind, err := r(ctx, d.Run, d.Event)
	key := fmt.Sprintf("%s-%d-%d", d.Run, d.Push, d.Event.Seq)
	return Message{body, kind, http.Header{"Idempotency-Key": {key}}}, err
}

// Options are the settings of a Deliverer. A zero field has the default that is named with it.
type Options struct {
	Door    *egress.Door   // the way to receivers that clients of runs name; one without exceptions
	Hooks   *egress.Door   // the way to those of webhooks; one without exceptions
	NoHooks bool           // nothing is told by webhooks
	Roots   *x509.CertPool // that certificates of receivers are held against; the system's
	AtOnce  int            // requests at once; 32
	PerHost int            // of these, to one host; 8
	Timeout time.Duration  // of a request; 10 s
	Tries   int            // of a delivery; 10, and 150 of one of a webhook
	Delay   time.Duration  // before the second try, doubled before each other 8 times; 7 s: 10 tries within an hour
	Logger  *slog.Logger   // ids, statuses and times only; nil discards
	// Told is called with what became of each try, and how long that was after its event.
	Told func(r Result, after time.Duration)

	hookTries int
}

func (o Options) withDefaults() Options {
	if o.Door == nil {
		o.Door = egress.New(egress.Options{})
	}
	if o.Hooks == nil {
		o.Hooks = egress.New(egress.Options{})
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Told == nil {
		o.Told = func(Result, time.Duration) {}
	}
	o.AtOnce, o.PerHost = cmp.Or(o.AtOnce, 32), cmp.Or(o.PerHost, 8)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.hookTries = cmp.Or(o.Tries, 150) // three days
	o.Tries, o.Delay = cmp.Or(o.Tries, 10), cmp.Or(o.Delay, 7*time.Second)
	return o
}

// mostDoubled is how often the delay doubles: to half an hour.
const mostDoubled = 8

// delay returns how long to wait after a number of tries: between four and six fifths of what
// doubles each time, so that receivers aren't asked by all at once when they are back.
func (o Options) delay(tries int) time.Duration {
	whole := o.Delay << min(tries-1, mostDoubled)
	return whole*4/5 + rand.N(whole*2/5+1) //nolint:gosec // anybody may guess a delay
}
