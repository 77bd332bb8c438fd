package flow

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }
