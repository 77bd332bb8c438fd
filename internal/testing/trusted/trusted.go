// Package trusted has the context of tests that stand for the server itself: one that names nobody sees nothing.
package trusted

import (
	"context"
	"testing"

	"github.com/agent-on-demand/aod/internal/access"
)

// Context is the context of a test, in which everything is within reach.
func Context(t testing.TB) context.Context {
	t.Helper()
	return access.WithServer(t.Context())
}
