package client

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func TestWorkersAreAskedForByTheirNames(t *testing.T) {
	t.Parallel()
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+string(body))
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet:
			answer(200, "application/json", `{"workers":[{"name":"big","state":"away","running":2}]}`)(w, r)
		case r.URL.Path == "/v1/workers":
			answer(201, "application/json", `{"name":"big","home":"h","pins":["p"],"token":"t","expires_at":"2026-01-02T03:04:05Z"}`)(w, r)
		default:
			answer(200, "application/json", `{"name":"big","state":"connected","running":0,"drained":true}`)(w, r)
		}
	})
	all, err := c.Workers.List(t.Context())
	if err != nil || len(all) != 1 || all[0].State != api.WorkerAway || all[0].Running != 2 {
		t.Errorf("listed %+v, %v", all, err)
	}
	join, err := c.Workers.Add(t.Context(), "big")
	if err != nil || fmt.Sprint(join.Name, join.Server, join.Home, join.Pins, join.Token) != "bigh[p]t" || join.ExpiresAt.Year() != 2026 {
		t.Errorf("added %+v, %v", join, err)
	}
	drained, err := c.Workers.Drain(t.Context(), "big")
	if err != nil || !drained.Drained {
		t.Errorf("drained %+v, %v", drained, err)
	}
	_, undrained := c.Workers.Undrain(t.Context(), "a/b")
	if err := c.Workers.Remove(t.Context(), "big"); err != nil || undrained != nil {
		t.Error(err, undrained)
	}
	want := []string{
		"GET /v1/workers ", `POST /v1/workers {"name":"big"}`, "POST /v1/workers/big/drain ", "POST /v1/workers/a%2Fb/undrain ", "DELETE /v1/workers/big ",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

// Whether a lost answer had a worker made or removed is for a person to see.
func TestAWorkerIsAddedAndRemovedOnce(t *testing.T) {
	t.Parallel()
	tries := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		cut(w)
	})
	_, err := c.Workers.Add(t.Context(), "big")
	removed := c.Workers.Remove(t.Context(), "big")
	if !fault.Is(err, fault.Unavailable) || !fault.Is(removed, fault.Unavailable) || tries != 2 {
		t.Errorf("%d tries: %v, %v", tries, err, removed)
	}
}
