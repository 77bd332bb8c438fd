package integration_test

import (
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestTwoServersOfOneEngineLeaveEachOtherAlone(t *testing.T) {
	first := startServer(t, nil)
	first.testPut(t)
	record := first.begin(t, "echo begun; sleep 3; echo '{}' > /io/output.json")
	second := startServer(t, nil) // the same path in its container, on another volume
	second.testHello(t)
	if record = first.end(t, record.ID); record.Outcome != api.Success {
		t.Errorf("%s", show(record))
	}
}
