package store

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Signin is what is known of somebody who has signed in at the page.
type Signin struct {
	Digest    []byte // of the secret that their browser has
	Proof     []byte // with what they signed in: the digest of a token, or what an issuer has told of them
	ExpiresAt time.Time
}

// Signins keeps who has signed in at the page.
type Signins struct{ core *core }

// Add stores that somebody has signed in, forgets those whose time is up by now, and of the others those that end
// first, so that at most so many are left.
func (s *Signins) Add(ctx context.Context, in Signin, now time.Time, most int) error {
	return s.core.change(ctx, "sign in", func(ctx context.Context, tx *transaction) error {
		const insert = "INSERT INTO signins (digest, token, expires_at) VALUES (?, ?, ?)"
		if err := tx.exec(ctx, "DELETE FROM signins WHERE expires_at <= ?", nanos(now)); err != nil {
			return err
		}
		if err := tx.exec(ctx, insert, in.Digest, in.Proof, nanos(in.ExpiresAt)); err != nil {
			return err
		}
		return tx.exec(ctx, `DELETE FROM signins WHERE digest IN
			(SELECT digest FROM signins ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`, most)
	})
}

// Get returns who has signed in by the digest of their secret, or a NotFound fault.
func (s *Signins) Get(ctx context.Context, digest []byte) (Signin, error) {
	scan := func(row scanner, in *Signin) error {
		var end int64
		err := row.Scan(&in.Digest, &in.Proof, &end)
		in.ExpiresAt = fromNanos(end)
		return err
	}
	in, err := find(ctx, s.core.readers, scan, fault.New(fault.NotFound, "nobody has signed in so"),
		"SELECT digest, token, expires_at FROM signins WHERE digest = ?", digest)
	return in, s.core.explain(ctx, "find who signed in", err)
}

// Clear signs everybody out.
func (s *Signins) Clear(ctx context.Context) error {
	return s.core.change(ctx, "sign all out", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "DELETE FROM signins")
	})
}

// Remove signs somebody out. Of a digest that isn't there it does nothing.
func (s *Signins) Remove(ctx context.Context, digest []byte) error {
	return s.core.change(ctx, "sign out", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "DELETE FROM signins WHERE digest = ?", digest)
	})
}
