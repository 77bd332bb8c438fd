package container

import (
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// startFailure is a unit's program that could not be started, so that there is no model card. As
// an error it is a Capsule fault, as the end of a run the outcome start_failed.
type startFailure struct {
	fault *fault.Error
	code  int
}

func (f *startFailure) Error() string { return f.fault.Error() }
func (f *startFailure) Unwrap() error { return f.fault }

// programMissing is the failure of a program that ended with 126 or 127, or never began. why is
// the init's reason; "" is none.
func programMissing(unit string, code int, why string) *startFailure {
	if why == "" {
		why = missingText(code)
	}
	return &startFailure{code: code, fault: fault.New(fault.Capsule, "the program of %q could not be started: %s", unit,
		why).WithHint(missingHint)}
}

func (f *startFailure) result() run.Result {
	return run.Failed(api.StartFailed, f.code, &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.StartFailed), Message: f.fault.Msg, Hint: f.fault.Hint,
	})
}

const missingHint = "check the ENTRYPOINT of its Dockerfile, and that its interpreter and what it calls are in its " +
	"image; its log says more"

func missingText(code int) string {
	if code == au.ExitNotExecutable {
		return fmt.Sprintf("it exited with %d: it, or what it calls, can't be executed", code)
	}
	return fmt.Sprintf("it exited with %d: its interpreter, or what it calls, is not in its image", code)
}
