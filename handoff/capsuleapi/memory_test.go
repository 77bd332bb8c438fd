package capsuleapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// kept is a Memory that keeps what comes first.
type kept map[string]json.RawMessage

func (k kept) Recall(_ context.Context, key string) (json.RawMessage, error) {
	if k[key] == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	return k[key], nil
}

func (k kept) Keep(_ context.Context, key string, value json.RawMessage) (json.RawMessage, error) {
	if k[key] == nil {
		k[key] = value
	}
	return k[key], nil
}

func withMemory(t testing.TB) (*harness, kept) {
	t.Helper()
	w, k := newWorld(t), kept{}
	w.h = NewHandler(w.caller, w.runs, w.limits, nil, MemoryMount(k))
	return w, k
}

func TestAValueIsKeptUnderItsKey(t *testing.T) {
	t.Parallel()
	w, _ := withMemory(t)
	for _, key := range []string{"a", "a/b//../c", "é\x00\n", "?&=%2F", strings.Repeat("k", maxMemoryKey)} {
		at := "/memory?key=" + url.QueryEscape(key)
		answered[problem](t, w.do(http.MethodGet, at, ""), http.StatusNotFound)
		for _, value := range []string{`[1.0,null,"<é>"]`, `"other"`} { // of which the first one stays
			if rec := w.do(http.MethodPut, at, `{"value": `+value+`}`); rec.Code != http.StatusOK || rec.Body.String() != `{"value":[1.0,null,"<é>"]}`+"\n" {
				t.Errorf("%q: %d %s", key, rec.Code, rec.Body)
			}
		}
		answered[memoryValue](t, w.do(http.MethodGet, at, ""), http.StatusOK)
	}
}

func TestWhatIsNoValueIsNotKept(t *testing.T) {
	t.Parallel()
	w, k := withMemory(t)
	for at, status := range map[string]int{
		"": http.StatusBadRequest, "?key=": http.StatusBadRequest, "?key=a&key=b": http.StatusBadRequest, "?key=a&b=c": http.StatusBadRequest,
		"?key=%ff": http.StatusBadRequest, "?key=" + strings.Repeat("k", maxMemoryKey+1): http.StatusBadRequest, "/a": http.StatusNotFound,
	} {
		answered[problem](t, w.do(http.MethodGet, "/memory"+at, ""), status)
		answered[problem](t, w.do(http.MethodPut, "/memory"+at, `{"value":1}`), status)
	}
	for body, status := range map[string]int{
		`{}`: http.StatusBadRequest, `{"value":1,"more":2}`: http.StatusBadRequest, `[]`: http.StatusBadRequest, `{"value":`: http.StatusBadRequest,
		`{"value":` + strings.Repeat("[", 100_000):                             http.StatusBadRequest,
		fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", maxMemoryValue)):       http.StatusRequestEntityTooLarge,
		fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 2*maxMemoryValue+100)): http.StatusRequestEntityTooLarge,
	} {
		answered[problem](t, w.do(http.MethodPut, "/memory?key=a", body), status)
	}
	answered[problem](t, w.do(http.MethodPost, "/memory?key=a", `{"value":1}`), http.StatusMethodNotAllowed)
	if len(k) > 0 {
		t.Errorf("it keeps %s", k)
	}
}
