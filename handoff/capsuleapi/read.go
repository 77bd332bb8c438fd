package capsuleapi

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// wait is how long a request waits for the end of a run.
type wait struct {
	untilEnd bool
	time     time.Duration // else; 0 is not at all
}

// recallIn reads ?recall, which is true or false.
func recallIn(values url.Values) (recall bool, err error) {
	switch values.Get("recall") {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fault.New(fault.BadRequest, `the query parameter "recall" is not valid`).
		WithHint("it is true or false")
}

// queryOf returns the parameters of the address, each of which is known and there once.
func queryOf(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the query of the address can't be read")
	}
	for name, given := range values {
		if !slices.Contains(known, name) || len(given) > 1 {
			return nil, fault.New(fault.BadRequest,
				"the address has a query parameter that is not known, or one twice").
				WithHint("what it can have: %s", strings.Join(known, ", "))
		}
	}
	return values, nil
}

// waitIn reads ?wait: true, false, or a duration.
func waitIn(values url.Values, fallback wait) (wait, error) {
	switch text := values.Get("wait"); text {
	case "":
		return fallback, nil
	case "true":
		return wait{untilEnd: true}, nil
	case "false":
		return wait{}, nil
	default:
		if d, ok := httpwire.Wait(text); ok {
			return wait{time: d}, nil
		}
	}
	return wait{}, fault.New(fault.BadRequest, `the query parameter "wait" is not valid`).
		WithHint("it is true, false, or a duration from 0s to 5m, such as 30s")
}

// handoffID returns the id in the request's path.
func handoffID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no handoff of this id").
			WithHint("POST /handoff answers with one")
	}
	return id, nil
}

// readFields reads the body, one JSON object of at most limit bytes, as its fields.
func readFields(w http.ResponseWriter, r *http.Request, limit int64) (httpwire.Fields, error) {
	object, err := readObject(w, r, limit)
	if err != nil {
		return nil, err
	}
	return httpwire.FieldsOf(object.JSON())
}

// readObject reads the body, one JSON object of at most limit bytes.
func readObject(w http.ResponseWriter, r *http.Request, limit int64) (contract.Payload, error) {
	if err := httpwire.RequireJSON(r); err != nil {
		return contract.Payload{}, err
	}
	raw, err := readBody(w, r, limit)
	if err != nil {
		return contract.Payload{}, err
	}
	return contract.Decode(raw, limit)
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(httpwire.NewBody(http.MaxBytesReader(w, r.Body, limit), limit))
	if fault.Is(err, fault.TooLarge) {
		err = &handoff.Refusal{Rule: handoff.RuleSize, Fault: fault.Public(err).
			WithHint("put large data in a file and declare the field with format file_path")}
	}
	return raw, err
}
