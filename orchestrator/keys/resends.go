package keys

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A client sends again what was not answered, because the server or the line died. What it sends is
// known by a digest, until its answer was delivered.
const (
	resendPrefix = "resend/"
	maxResend    = 256 // bytes
)

// ofSubmission is the key of a submission that is sent again where its answer was lost. A session that
// was begun for it is none of what was sent.
func ofSubmission(owner access.Owner, sub spool.Submission) (store.Key, error) {
	if sub.Key != "" {
		return store.Key{}, fault.New(fault.Input, "a submission has a key or a digest, not both")
	}
	to := sub.Unit
	if scope := Scope(owner); scope != "" {
		to += "@" + scope // no name of a unit has that
	}
	return ofResent(sub.Resend, to)
}

// ofResent is the key of what was sent to a unit or a run.
func ofResent(digest, to string) (store.Key, error) {
	if digest == "" || len(digest) > maxResend {
		return store.Key{}, fault.New(fault.Input, "the digest of what is sent has not 1 to %d bytes", maxResend)
	}
	return store.Key{Value: resendPrefix + digest + "/" + to, Fingerprint: digest}, nil
}

// Resent is the key of something that is told to a run by a client that may send it again: until
// Delivered the same digest changes nothing.
func Resent(digest, id string) (run.Once, error) {
	key, err := ofResent(digest, id)
	return run.Once{Key: key.Value, Fingerprint: key.Fingerprint}, err
}

// Resends know what clients have sent again. They are safe for concurrent use.
type Resends struct {
	runs      *records.Reader
	store     *store.Store
	questions *questions.Registry
}

// NewResends returns the Resends that a store has.
func NewResends(runs *records.Reader, st *store.Store, asked *questions.Registry) *Resends {
	return &Resends{runs, st, asked}
}

// Delivered notes that a client has the answer to what it has sent about a run: the same digest is
// something new from now on. One that the run doesn't know isn't an error.
func (r *Resends) Delivered(ctx context.Context, id, digest string) error {
	if err := r.runs.Seen(ctx, id); err != nil {
		return err
	}
	_, err := r.store.Keys.Drop(ctx, id, resendPrefix+digest+"/")
	return err
}

// WasTold reports whether a run was told what has a digest, by the key Resent or by Answer, and the
// answer was not delivered.
func (r *Resends) WasTold(ctx context.Context, id, digest string) (bool, error) {
	if err := r.runs.Seen(ctx, id); err != nil {
		return false, err
	}
	key, err := ofResent(digest, id)
	if err != nil {
		return false, err
	}
	return Told(ctx, r.store.Keys, key)
}

// Answer answers a question of a run likewise.
func (r *Resends) Answer(ctx context.Context, id, digest, question string, answer api.Answer) error {
	once, err := Resent(digest, id)
	if err != nil {
		return err
	}
	return r.questions.AnswerOnce(ctx, question, answer, once)
}
