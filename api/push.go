package api

import (
	"errors"
	"time"
)

// ErrReceiver is in the chain of the error of a PushConfig that is refused.
var ErrReceiver = errors.New("the receiver is refused")

// PushConfig asks a server to tell a receiver what happens in a run, by an HTTP request for each
// event. It isn't shown again: see Push.
type PushConfig struct {
	ID          string // within the run: the same again takes the place of the one before; "" has the server choose
	URL         string // of the receiver: https, and a public address, or a host that the operator names
	Token       string // for the receiver, to know the server by; "" for none
	Scheme      string // "Bearer" or "Basic"; "" for none
	Credentials string // for the receiver, as they stand behind the scheme in the header Authorization
}

// Push is what is shown of a receiver that is told of a run.
type Push struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// by which it is asked; its credentials and its token are never shown
	Scheme     string         `json:"scheme,omitempty"`
	CreatedAt  time.Time      `json:"created_at"`
	Deliveries PushDeliveries `json:"deliveries"`
	TriedAt    *time.Time     `json:"tried_at,omitempty"` // the last try; nil: there was none
	Status     int            `json:"status,omitempty"`   // of the HTTP answer to it; 0: there was none
	// when the first of those that wait is tried; nil: none waits
	NextAt    *time.Time `json:"next_at,omitempty"`
	GivenUpAt *time.Time `json:"given_up_at,omitempty"` // nil: it goes on
	Reason    PushEnd    `json:"reason,omitempty"`      // why it was given up
}

// PushDeliveries counts the events of which a receiver is told.
type PushDeliveries struct {
	Delivered int64 `json:"delivered"`
	Waiting   int64 `json:"waiting"`
	Lost      int64 `json:"lost"` // they waited when the push was given up
}

// PushEnd says why a push was given up.
type PushEnd string

// The reasons for which a push is given up.
const (
	PushBacklog    PushEnd = "backlog"    // too many deliveries waited
	PushRefused    PushEnd = "refused"    // the receiver answered the last try with a status that isn't 2xx
	PushBarred     PushEnd = "barred"     // at the last try it was at no address that may be connected to
	PushUnanswered PushEnd = "unanswered" // it didn't answer the last try
	PushUnmade     PushEnd = "unmade"     // what it was to be told couldn't be made
	PushGone       PushEnd = "gone"       // the receiver of a webhook answered 410
)
