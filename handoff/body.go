package handoff

import (
	"io"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

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
		err = refuse(RuleSize, fault.Public(err).
			WithHint("put large data in a file and declare the field with format file_path"))
	}
	return raw, err
}
