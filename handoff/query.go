package handoff

import (
	"net/http"
	"net/url"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// wait is how long a request waits for the end of a run.
type wait struct {
	untilEnd bool
	time     time.Duration // else; 0 is not at all
}

// waitOf reads ?wait: true, false, or a duration.
func waitOf(r *http.Request, fallback wait) (wait, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return wait{}, fault.Wrap(fault.BadRequest, err, "the query of the address can't be read")
	}
	for name, given := range values {
		if name != "wait" || len(given) > 1 {
			return wait{}, fault.New(fault.BadRequest, "the address has a query parameter that is not known, or one twice").
				WithHint("its only parameter is wait")
		}
	}
	switch text := values.Get("wait"); text {
	case "":
		return fallback, nil
	case "true":
		return wait{untilEnd: true}, nil
	case "false":
		return wait{}, nil
	default:
		return waitTime(text)
	}
}

func waitTime(text string) (wait, error) {
	d, ok := httpwire.Wait(text)
	if !ok {
		return wait{}, fault.New(fault.BadRequest, `the query parameter "wait" is not valid`).
			WithHint("it is true, false, or a duration from 0s to 5m, such as 30s")
	}
	return wait{time: d}, nil
}

// handoffID returns the id in the request's path.
func handoffID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no handoff of this id").WithHint("POST /handoff answers with one")
	}
	return id, nil
}
