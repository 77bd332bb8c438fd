package httpwire

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const mib = 1 << 20
