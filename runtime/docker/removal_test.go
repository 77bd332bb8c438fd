package docker

import (
	"net/http"
	"slices"
	"testing"
)

// An engine that removes a container by itself may fail at that, and tells nobody but who
// waits: the container stays.
func TestARemovalThatTheEngineHasBegunIsFollowedToItsEnd(t *testing.T) {
	going := answer(http.StatusConflict, `{"message":"removal of container x is already in progress"}`)
	missing := answer(http.StatusNotFound, `{"message":"No such container: x"}`)
	for name, it := range map[string]struct {
		removal []http.HandlerFunc // the answers, one after the other
		waiting http.HandlerFunc
	}{
		"and succeeds":        {[]http.HandlerFunc{going, missing}, answer(http.StatusOK, `{"StatusCode":0}`)},
		"and had succeeded":   {[]http.HandlerFunc{going, missing}, missing},
		"and fails":           {[]http.HandlerFunc{going, answer(http.StatusNoContent, "")}, answer(http.StatusOK, `{"StatusCode":0,"Error":{"Message":"device busy"}}`)},
		"and fails, and soon": {[]http.HandlerFunc{going, going, answer(http.StatusNoContent, "")}, answer(http.StatusOK, `{"StatusCode":0}`)},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			api := &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"DELETE /containers/x": func(w http.ResponseWriter, r *http.Request) {
					asked++
					it.removal[asked-1](w, r)
				},
				"POST /containers/x/wait": it.waiting,
			}}
			if err := connect(t, api).Remove(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			if asked != len(it.removal) || !slices.Contains(api.requests(), "POST /v1.41/containers/x/wait") {
				t.Errorf("%d requests of %d: %v", asked, len(it.removal), api.requests())
			}
		})
	}
}
