package docs_test

import (
	"os"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
)

// program is aod as it is in the tree.
var program programtest.Program

func TestMain(m *testing.M) {
	code := m.Run()
	program.Remove()
	os.Exit(code)
}
