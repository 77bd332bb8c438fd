package docker

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/runtime"
)

// TestAClassicBuildOutlivesTheRemovalOfOtherImages has an engine that says what 20.10 says in
// about every fourth build beside a loop that imports and removes images.
func TestAClassicBuildOutlivesTheRemovalOfOtherImages(t *testing.T) {
	const lost = `{"stream":"Step 1/2 : FROM scratch\n"}{"stream":"Step 2/2 : COPY f /f\n"}` +
		`{"errorDetail":{"message":"unable to find image \"sha256:2c2c\""},"error":"unable to find image \"sha256:2c2c\""}`
	for name, c := range map[string]struct {
		losses int
		want   []string // nocache of each try
	}{
		"once":          {1, []string{"", ""}},
		"at each look":  {100, []string{"", "", "", "1"}},
		"not this time": {0, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			var tries []string
			e := connect(t, &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{
				"POST /build": func(w http.ResponseWriter, r *http.Request) {
					tries = append(tries, r.URL.Query().Get("nocache"))
					if len(tries) <= c.losses && tries[len(tries)-1] == "" {
						answer(http.StatusOK, lost)(w, r)
						return
					}
					answer(http.StatusOK, `{"aux":{"ID":"sha256:1"}}`)(w, r)
				},
			}})
			spec := runtime.BuildSpec{Limits: runtime.BuildLimits{Classic: true}, WriteContext: func(io.Writer) error { return nil }}
			failed := 0
			id, err := e.Build(t.Context(), spec, func(event runtime.BuildEvent) {
				if event.State == runtime.StepFailed {
					failed++
				}
			})
			if id != "sha256:1" || err != nil || failed > 0 {
				t.Errorf("%q, %v, %d failed steps", id, err, failed)
			}
			if diff := cmp.Diff(c.want, tries); diff != "" {
				t.Error(diff)
			}
		})
	}
}
