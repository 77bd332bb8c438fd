package orchestrator

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A client sends again what was not answered, because the server or the line died. What it sends is
// known by a digest, until its answer was delivered.
const (
	resendPrefix = "resend/"
	maxResend    = 256 // bytes
)

// resendKey is the key of a submission that is sent again where its answer was lost. A session that
// was begun for it is none of what was sent.
func (sub Submission) resendKey() (store.Key, error) {
	if sub.Key != "" {
		return store.Key{}, fault.New(fault.Input, "a submission has a key or a digest, not both")
	}
	return keyOfResent(sub.Resend, sub.Unit)
}

// keyOfResent is the key of what was sent to a unit or a run.
func keyOfResent(digest, to string) (store.Key, error) {
	if digest == "" || len(digest) > maxResend {
		return store.Key{}, fault.New(fault.Input, "the digest of what is sent has not 1 to %d bytes", maxResend)
	}
	return store.Key{Value: resendPrefix + digest + "/" + to, Fingerprint: digest}, nil
}

// Delivered notes that a client has the answer to what it has sent about a run: the same digest is
// something new from now on. One that the run doesn't know is no error.
func (s *Service) Delivered(ctx context.Context, id, digest string) error {
	if err := s.seen(ctx, id); err != nil {
		return err
	}
	_, err := s.store.DropKeys(ctx, id, resendPrefix+digest+"/")
	return err
}

// WasTold reports whether a run was told what has a digest, by SayResent or AnswerResent, and the
// answer was not delivered.
func (s *Service) WasTold(ctx context.Context, id, digest string) (bool, error) {
	if err := s.seen(ctx, id); err != nil {
		return false, err
	}
	key, err := keyOfResent(digest, id)
	if err != nil {
		return false, err
	}
	return s.wasTold(ctx, key)
}

// SayResent is Say for a client that may send its message again: until Delivered the same digest
// changes nothing.
func (s *Service) SayResent(ctx context.Context, id, digest string, m api.MessageEvent) error {
	key, err := keyOfResent(digest, id)
	if err != nil {
		return err
	}
	_, err = s.say(ctx, id, m, nil, key)
	return err
}

// AnswerResent is Answer likewise, for a question of the run.
func (s *Service) AnswerResent(ctx context.Context, id, digest, question string, answer api.Answer) error {
	key, err := keyOfResent(digest, id)
	if err != nil {
		return err
	}
	return s.answer(ctx, question, answer, key)
}
