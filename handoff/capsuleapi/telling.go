package capsuleapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// telling takes how far a run says it is.
type telling struct {
	runs     handoff.Runs
	throttle handoff.Throttle
}

func (t *telling) postProgress(w http.ResponseWriter, r *http.Request) error {
	p, err := readProgress(w, r)
	if err != nil {
		return err
	}
	if t.throttle.Allow(time.Now()) {
		t.runs.Progress(p)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func readProgress(w http.ResponseWriter, r *http.Request) (handoff.Progress, error) {
	f, err := readFields(w, r, httpwire.SmallBody)
	if err != nil {
		return handoff.Progress{}, httpwire.AsKind(fault.BadRequest, err)
	}
	var p handoff.Progress
	err = errors.Join(f.Only("percent", "step", "message"),
		httpwire.Take(f, "percent", &p.Percent), httpwire.Take(f, "step", &p.Step),
		httpwire.Take(f, "message", &p.Message))
	if err != nil {
		return handoff.Progress{}, err
	}
	return p.Check()
}
