package testkit

import (
	"testing"

	"go.uber.org/goleak"
)

// NoLeaks is a package's TestMain: it runs the tests, and fails where a goroutine outlives them all. One
// that ends late is none that stays, so it has Patience with them, where goleak has half a second.
func NoLeaks(m *testing.M) { goleak.VerifyTestMain(patient{m}) }

type patient struct{ *testing.M }

// Run implements goleak.TestingM.
func (p patient) Run() int {
	code := p.M.Run()
	if code == 0 {
		Within(Patience, func() bool { return goleak.Find() == nil })
	}
	return code
}
