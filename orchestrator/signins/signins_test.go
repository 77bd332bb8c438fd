package signins_test

import (
	"context"
	"crypto/sha256"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/signins"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// rows are in memory.
type rows map[string]store.Signin

func (r rows) Add(_ context.Context, in store.Signin, _ time.Time, _ int) error {
	r[string(in.Digest)] = in
	return nil
}

func (r rows) Get(_ context.Context, digest []byte) (store.Signin, error) {
	if in, ok := r[string(digest)]; ok {
		return in, nil
	}
	return store.Signin{}, fault.New(fault.NotFound, "nobody")
}

func (r rows) Remove(_ context.Context, digest []byte) error {
	delete(r, string(digest))
	return nil
}

func TestASignInLastsTwelveHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := rows{}
		registry := signins.New(kept, "server")
		session, err := registry.Begin(t.Context(), signins.ByToken("token"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12*time.Hour - time.Second)
		if proof, err := registry.ProofOf(t.Context(), session.Secret); err != nil || proof.Token != sha256.Sum256([]byte("token")) || proof.Person != nil {
			t.Errorf("before: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := registry.ProofOf(t.Context(), session.Secret); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("after: %v", err)
		}
		for digest, in := range kept {
			if digest == session.Secret || string(in.Proof) == "token" {
				t.Error("what is stored signs in")
			}
		}
	})
}

// What an issuer has told of somebody is kept as it was, and their session ends with its proof.
func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := signins.New(rows{}, "server")
		person := []byte(`{"issuer":"https://issuer.example","subject":"ada"}`)
		for until, lasts := range map[time.Duration]time.Duration{time.Minute: time.Minute, 24 * time.Hour: 12 * time.Hour} {
			session, err := registry.Begin(t.Context(), signins.Proof{Person: person, Until: time.Now().Add(until)})
			if err != nil || time.Until(session.ExpiresAt) != lasts {
				t.Errorf("it lasts until %v: %v", session.ExpiresAt, err)
			}
			if proof, err := registry.ProofOf(t.Context(), session.Secret); err != nil || string(proof.Person) != string(person) {
				t.Errorf("%s: %v", proof.Person, err)
			}
			time.Sleep(lasts)
			if _, err := registry.ProofOf(t.Context(), session.Secret); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("after that: %v", err)
			}
		}
	})
}

func TestACodeIsGoodForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := signins.New(rows{}, "server")
		code := func() string {
			text, until, err := registry.Code(signins.ByToken("token"))
			if err != nil || time.Until(until) != time.Minute {
				t.Fatal(until, err)
			}
			return text
		}
		early, late := code(), code()
		time.Sleep(time.Minute - time.Second)
		if _, err := registry.Redeem(t.Context(), early); err != nil {
			t.Errorf("early: %v", err)
		}
		time.Sleep(time.Second)
		for name, text := range map[string]string{"used": early, "late": late, "unknown": "x", "none": ""} {
			if _, err := registry.Redeem(t.Context(), text); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 100 {
			code()
		}
		if _, _, err := registry.Code(signins.ByToken("token")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the 101st: %v", err)
		}
		time.Sleep(time.Minute)
		code()
	})
}

// Cookies ignore ports: two servers of one host have different ones.
func TestACookieIsOfOneServer(t *testing.T) {
	t.Parallel()
	one, other := signins.New(rows{}, "one"), signins.New(rows{}, "other")
	for _, tls := range []bool{false, true} {
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(one.Cookie(signins.Session{Secret: "s"}, tls))
		if got := one.SecretOf(r); got != "s" {
			t.Errorf("its own: %q", got)
		}
		if got := other.SecretOf(r); got != "" {
			t.Errorf("another's: %q", got)
		}
	}
}
