package web_test

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func TestSigningIn(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn()
	id := p.ran("", "x")
	p.get("/ui/runs").wants(t, 200, id)
}
