package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// fieldsOf reads what a small form was filled in with.
func fieldsOf(w http.ResponseWriter, r *request) (url.Values, error) {
	return fieldsUpTo(w, r, httpwire.SmallBody)
}

// fieldsUpTo is fieldsOf for a form of at most so many bytes, as a browser writes them.
func fieldsUpTo(w http.ResponseWriter, r *request, most int64) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the form can't be read").
			WithHint("it takes at most %s", size(most))
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

// plainEnds is a text that was sent, with the ends of its lines that it had on the page: browsers send two characters
// for each.
func plainEnds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
