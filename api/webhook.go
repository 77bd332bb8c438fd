package api

import "time"

// WebhookRequest asks a server to tell a receiver, by Standard Webhooks, of the ends of runs and of what they ask
// people.
type WebhookRequest struct {
	URL    string   `json:"url"`              // of the receiver, which speaks https at a public address
	Secret string   `json:"secret,omitempty"` // by which requests are signed: whsec_BASE64; "" has the server make one
	Run    string   `json:"run,omitempty"`    // the id of the run of which alone it is told; "": of all
	Events []string `json:"events,omitempty"` // of WebhookEvents; none: all
}

// WebhookRotation asks a server to give a webhook another secret.
type WebhookRotation struct {
	Secret string `json:"secret,omitempty"` // as of WebhookRequest
	Grace  string `json:"grace,omitempty"`  // how long the one before signs along: "1h", "0" for not at all; "" is "1h"
}

// The types of the events of which webhooks tell.
const (
	WebhookRunCompleted     = "run.completed"
	WebhookRunFailed        = "run.failed"
	WebhookRunTimeout       = "run.timeout"
	WebhookRunCancelled     = "run.cancelled"
	WebhookQuestionAsked    = "question.asked"
	WebhookQuestionAnswered = "question.answered"
	WebhookQuestionClosed   = "question.closed" // nobody answered, and nobody can any more

	WebhookTested = "webhook.test" // of a try that somebody asked for
)

// WebhookEvents are the types that a webhook may tell of.
func WebhookEvents() []string {
	return []string{
		WebhookRunCompleted, WebhookRunFailed, WebhookRunTimeout, WebhookRunCancelled,
		WebhookQuestionAsked, WebhookQuestionAnswered, WebhookQuestionClosed,
	}
}

// Webhook is what is shown of a receiver that is told of runs.
type Webhook struct {
	ID     string   `json:"id"`
	URL    string   `json:"url"`
	Run    string   `json:"run,omitempty"` // of which alone it is told; "" of all
	Events []string `json:"events"`
	By     string   `json:"by,omitempty"`    // the name of the token with which it was made
	Owner  *Owner   `json:"owner,omitempty"` // nil: DefaultTeam, and the holder of By
	// It is told of the runs that were made with the token By alone, for that sees no others.
	OwnOnly   bool      `json:"own_only,omitempty"`
	CreatedAt time.Time `json:"created_at"`

	Deliveries   PushDeliveries `json:"deliveries"`
	State        WebhookState   `json:"state"`
	Outcome      string         `json:"outcome,omitempty"`       // of the last try; "": there was none
	Status       int            `json:"status,omitempty"`        // of the answer to it; 0: there was none
	TriedAt      *time.Time     `json:"tried_at,omitempty"`      // nil: there was none
	FailingSince *time.Time     `json:"failing_since,omitempty"` // the first failure since the last delivery
	NextAt       *time.Time     `json:"next_at,omitempty"`       // when what waits is tried; nil: nothing waits
	GivenUpAt    *time.Time     `json:"given_up_at,omitempty"`   // nil: it goes on
	Reason       PushEnd        `json:"reason,omitempty"`        // why it was given up

	Secret string `json:"secret,omitempty"` // in the answer that tells that it was made, and in no other
}

// WebhookState is how a webhook fares.
type WebhookState string

// The states of a webhook.
const (
	WebhookActive  WebhookState = "active"   // its last try was a delivery, or there was none
	WebhookFailing WebhookState = "failing"  // its last try failed, and it goes on
	WebhookGivenUp WebhookState = "given_up" // nothing more is told
)

// WebhookPage is a part of the list of webhooks.
type WebhookPage struct {
	Webhooks []Webhook `json:"webhooks"`
	Next     *int64    `json:"next"` // for the next page; nil: this is the last one
}

// WebhookTest is what became of a try that somebody asked for.
type WebhookTest struct {
	Outcome string `json:"outcome"`          // "delivered", "refused", "barred", "unanswered"
	Status  int    `json:"status,omitempty"` // of the answer; 0: there was none
	MS      int64  `json:"ms"`
}
