package pushes

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Book has what is to be told. It survives the process.
type Book interface {
	// Due returns at most limit pushes that have something to tell at a time and aren't among
	// others, those that have waited longest first, and when the next one after that has; zero:
	// none has.
	Due(ctx context.Context, at time.Time, besides Besides, limit int) (due []Due, next time.Time, err error)
	// First returns what a push has to tell next. Of one that has nothing to tell waits is false.
	First(ctx context.Context, push int64) (d Delivery, waits bool, err error)
	// Note keeps what became of a delivery. Without Delivered or Nothing it is tried again at
	// Result.Next; where that is zero, its push is given up.
	Note(ctx context.Context, d Delivery, r Result) error
}

// Besides are the pushes that Due leaves out: these, and all of receivers at these hosts.
type Besides struct {
	Pushes   []int64
	Hosts    []string
	Named    bool // those of receivers that clients of runs named
	Webhooks bool // those of webhooks
}

// Due is a push that has something to tell.
type Due struct {
	Push int64
	Host string
}

// Delivery is an event that a push has to tell of.
type Delivery struct {
	Push  int64
	Run   string // id
	To    Target
	Event api.Event
	At    time.Time // when the event was
	Tries int       // that were made

	Webhook  string // the id of the webhook whose push it is; "": a client of the run named the receiver
	Failures int    // of the webhook's tries in a row
	Of       Subject
}

// Subject is what a run is that a Delivery tells of.
type Subject struct {
	Unit, Root, Team, By string // By: the name of the token with which it was made; "" for none
}

// Result is what became of a delivery.
type Result struct {
	At     time.Time
	Word   Word
	Status int       // of the answer; 0: there was none
	Next   time.Time // of a delivery that is tried again; zero: it isn't
}

// Word says what became of a delivery.
type Word string

// The words for what becomes of a delivery. They are values of a label of metrics.
const (
	Delivered  Word = "delivered"  // the receiver has taken it
	Nothing    Word = "nothing"    // nothing was to be told of the event
	Refused    Word = "refused"    // the receiver has answered with another status than one of 200 to 299
	Barred     Word = "barred"     // the receiver is at no address that may be connected to
	Unanswered Word = "unanswered" // the receiver couldn't be connected to, or didn't answer in time
	Unmade     Word = "unmade"     // the body couldn't be made
	Gone       Word = "gone"       // the receiver of a webhook has answered 410: it is told nothing more
)

// settled reports whether the push may go on with what it has to tell next.
func (w Word) settled() bool { return w == Delivered || w == Nothing }
