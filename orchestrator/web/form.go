package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// fieldsOf reads what a small form was filled in with.
func fieldsOf(w http.ResponseWriter, r *request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, httpwire.SmallBody)
	if err := r.ParseForm(); err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the form can't be read").
			WithHint("it takes at most %d KiB", httpwire.SmallBody>>10)
	}
	return r.PostForm, nil
}

// numberOf reads a number of a request's address; 0 where there is none.
func numberOf(r *request, name string) int64 {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
