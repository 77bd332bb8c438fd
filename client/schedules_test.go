package client

import (
	"net/http"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// A schedule that must be new says so, and only that one: whoever meets another is told.
func TestAddSchedule(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "*" {
			answer(http.StatusPreconditionFailed, "application/problem+json", `{"code":"exists","status":412,"title":"there is one already"}`)(w, r)
			return
		}
		answer(http.StatusOK, "application/json", `{"name":"one","unit":"hello"}`)(w, r)
	})
	spec := api.ScheduleSpec{Unit: "hello", Every: "1h"}
	if _, created, err := c.Schedules.Add(t.Context(), "one", spec, nil); !fault.Is(err, fault.Exists) || created {
		t.Errorf("added: %v, %v", created, err)
	}
	if got, created, err := c.Schedules.Put(t.Context(), "one", spec, nil); err != nil || created || got.Unit != "hello" {
		t.Errorf("put: %+v, %v, %v", got, created, err)
	}
}

func TestTrySchedule(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || r.URL.RequestURI() != "/v1/schedules/one?dry_run=true" {
			t.Errorf("asked by %s %s", r.Method, r.URL.RequestURI())
		}
		answer(http.StatusOK, "application/json", `{"name":"one","change":"changed"}`)(w, r)
	})
	would, err := c.Schedules.Try(t.Context(), "one", api.ScheduleSpec{Unit: "hello", Every: "1h"}, nil)
	if want := (api.PlannedSchedule{Name: "one", Change: api.ScheduleChanged}); err != nil || would != want {
		t.Errorf("%+v, %v", would, err)
	}
}
