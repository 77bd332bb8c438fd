package signins

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	st, err := store.Open(filepath.Join(t.TempDir(), "aod.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return New(st.Signins, "server")
}

func TestWhoSignsInStandsForTheirToken(t *testing.T) {
	t.Parallel()
	ctx, g := t.Context(), newRegistry(t)
	session, err := g.Begin(ctx, "a token")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := g.TokenOf(ctx, session.Secret); err != nil || token != sha256.Sum256([]byte("a token")) {
		t.Errorf("it stands for %x (%v)", token, err)
	}
	for name, secret := range map[string]string{"another": session.Secret + "x", "none": "", "the token": "a token"} {
		if _, err := g.TokenOf(ctx, secret); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := g.End(ctx, session.Secret); err != nil {
		t.Fatal(err)
	}
	if _, err := g.TokenOf(ctx, session.Secret); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("after signing out: %v", err)
	}
}

// memory keeps sessions without a disk, whose goroutines a bubble couldn't wait for.
type memory map[string]store.Signin

func (m memory) Add(_ context.Context, in store.Signin, _ time.Time, _ int) error {
	m[string(in.Digest)] = in
	return nil
}

func (m memory) Get(_ context.Context, digest []byte) (store.Signin, error) {
	in, there := m[string(digest)]
	if !there {
		return in, fault.New(fault.NotFound, "no")
	}
	return in, nil
}

func (m memory) Remove(_ context.Context, digest []byte) error {
	delete(m, string(digest))
	return nil
}

func TestACodeWorksOnceWithinAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), New(memory{}, "server")
		first, _, err := g.Code("a token")
		if err != nil {
			t.Fatal(err)
		}
		late, _, err := g.Code("a token")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(codeLasts - time.Second)
		session, err := g.Redeem(ctx, first)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := g.TokenOf(ctx, session.Secret); err != nil || token != sha256.Sum256([]byte("a token")) {
			t.Errorf("it stands for %x (%v)", token, err)
		}
		if _, err := g.Redeem(ctx, first); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("used twice: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := g.Redeem(ctx, late); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("after a minute: %v", err)
		}
		time.Sleep(lasts)
		if _, err := g.TokenOf(ctx, session.Secret); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("after %s: %v", lasts, err)
		}
	})
}

func TestCodesAreBounded(t *testing.T) {
	t.Parallel()
	g := New(memory{}, "server")
	for range mostCodes {
		if _, _, err := g.Code("a token"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := g.Code("a token"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("one more: %v", err)
	}
}
