package backup

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Who had signed in at the page at the time of a backup may have been signed out since.
func TestNobodyIsSignedInAfterARestore(t *testing.T) {
	t.Parallel()
	before := homeOf(t, "01a2044e-1969-7341-b44f-88564b92b4f3", "01a2044e-1969-7341-b44f-88564b92b4f4")
	open := func(home string) *store.Store {
		t.Helper()
		s, err := store.Open(filepath.Join(home, layout.Database), store.Options{})
		must(t, err)
		return s
	}
	s, now := open(before), time.Now()
	must(t, s.Signins.Add(trusted.Context(t), store.Signin{Digest: []byte("ada"), Proof: []byte("proof"), ExpiresAt: now.Add(time.Hour)}, now, 10))
	must(t, s.Close())
	file, after := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "server")
	_, err := Write(trusted.Context(t), before, Target{File: file, Replace: true}, "test")
	must(t, err)
	_, err = Restore(trusted.Context(t), after, file, false)
	must(t, err)
	s = open(after)
	if in, err := s.Signins.Get(trusted.Context(t), []byte("ada")); !fault.Is(err, fault.NotFound) {
		t.Errorf("%+v, %v", in, err)
	}
	must(t, s.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
