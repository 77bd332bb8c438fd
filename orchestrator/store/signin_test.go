package store

import (
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestOfThoseWhoSignInTheOldestGoFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	now := time.Unix(1000, 0)
	add := func(name string, until time.Time) {
		t.Helper()
		in := Signin{Digest: []byte(name), Proof: []byte("token"), ExpiresAt: until}
		if err := s.Signins.Add(t.Context(), in, now, 2); err != nil {
			t.Fatal(err)
		}
	}
	add("over", now)
	add("first", now.Add(time.Hour))
	add("second", now.Add(2*time.Hour))
	add("third", now.Add(3*time.Hour))
	for name, kept := range map[string]bool{"over": false, "first": false, "second": true, "third": true} {
		in, err := s.Signins.Get(t.Context(), []byte(name))
		if kept && (err != nil || string(in.Proof) != "token" || in.ExpiresAt.Before(now)) {
			t.Errorf("%s is %+v (%v)", name, in, err)
		}
		if !kept && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}
