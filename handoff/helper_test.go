package handoff_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/handoff/handofftest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const callee = handofftest.Callee

var idOf = handofftest.ID

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
