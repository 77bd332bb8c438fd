package keys

import (
	"testing"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// A session that is begun for a message is another one each time that the message is sent.
func TestWhatIsSentAgainIsKnownInAnotherSession(t *testing.T) {
	t.Parallel()
	first, err := ofSubmission(access.Owner{}, spool.Submission{Unit: "u", Session: "a", Resend: "d"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ofSubmission(access.Owner{}, spool.Submission{Unit: "u", Session: "b", Resend: "d"})
	if err != nil || again != first {
		t.Errorf("%v, then %v: %v", first, again, err)
	}
	if other, err := ofSubmission(access.Owner{}, spool.Submission{Unit: "v", Resend: "d"}); err != nil || other.Value == first.Value {
		t.Errorf("another unit's is %v: %v", other, err)
	}
}
