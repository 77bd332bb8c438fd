package web

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// callAt is a call that began so many seconds after noon, and took one.
func callAt(seconds int, outcome api.Outcome) api.Tree {
	from := noon.Add(time.Duration(seconds) * time.Second)
	end := from.Add(time.Second)
	return api.Tree{
		ID: fmt.Sprint("call ", seconds), Unit: "csv-report", State: api.Completed, Outcome: outcome,
		CreatedAt: from, StartedAt: &from, FinishedAt: &end,
	}
}

func TestATreeShowsThoseThatFailedBeforeOthers(t *testing.T) {
	t.Parallel()
	top := callAt(0, api.Success)
	for i := range 2000 {
		outcome := api.Success
		if i >= 1990 {
			outcome = api.CapsuleError
		}
		top.Calls = append(top.Calls, callAt(i, outcome))
	}
	got := newTree(top, api.Record{}, noon.Add(time.Hour)).Top
	failed := 0
	for i, call := range got.Calls {
		if call.Is.Class == "bad" {
			failed++
		}
		if i > 0 && call.CreatedAt.Before(got.Calls[i-1].CreatedAt) {
			t.Errorf("%s stands behind %s", call.ID, got.Calls[i-1].ID)
		}
	}
	if failed != 10 || len(got.Calls) != mostSiblings || got.More != 2000-mostSiblings || got.MoreIs != "" {
		t.Errorf("%d calls are shown, %d of them failed, %d more (%q)", len(got.Calls), failed, got.More, got.MoreIs)
	}
}

func TestATreeEndsSomewhere(t *testing.T) {
	t.Parallel()
	top := callAt(0, api.Success)
	for range 10_000 {
		caller := callAt(1, api.Success)
		caller.Calls = []api.Tree{top}
		top = caller
	}
	rows := 0
	for n := newTree(top, api.Record{}, noon.Add(time.Hour)).Top; n != nil; rows++ {
		if len(n.Calls) == 0 {
			if n.More != 1 {
				t.Errorf("the last run that is shown has %d more below it, not 1", n.More)
			}
			break
		}
		n = n.Calls[0]
	}
	if rows >= mostRows {
		t.Errorf("%d runs are shown, more than %d", rows, mostRows)
	}
}

func TestABarHasItsPlaceInTime(t *testing.T) {
	t.Parallel()
	top := callAt(0, api.Success)
	end := noon.Add(10 * time.Second)
	top.FinishedAt = &end
	late := callAt(5, api.CapsuleError)
	begun := late.CreatedAt.Add(250 * time.Millisecond)
	late.StartedAt = &begun
	top.Calls = []api.Tree{late}
	got := newTree(top, api.Record{}, end).Top.Calls[0].Bars
	if diff := cmp.Diff([]bar{{"q", 50, 52.5}, {"bad", 52.5, 60}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttemptsThatFailedHaveBarsOfTheirOwn(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	record := api.Record{
		State: api.Completed, Outcome: api.Success, Attempts: []api.Attempt{{Number: 1}},
		Transitions: []api.Transition{
			{State: api.Idle, At: at(0)},
			{State: api.Starting, At: at(1)},
			{State: api.Running, At: at(2)},
			{State: api.Failed, At: at(4)},
			{State: api.Starting, At: at(5)},
			{State: api.Running, At: at(6)},
			{State: api.Completed, At: at(10)},
			{State: api.Cleanup, At: at(10)},
		},
	}
	got := axis{at(0), at(10)}.attempts(record, at(10))
	if diff := cmp.Diff([]bar{{"bad", 20, 40}, {"ok", 60, 100}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestACallTellsWhichAttemptMadeIt(t *testing.T) {
	t.Parallel()
	top := callAt(0, api.Success)
	for _, second := range []int{1, 3, 4, 7} {
		top.Calls = append(top.Calls, callAt(second, api.Success))
	}
	top.Calls[3].Calls = []api.Tree{callAt(8, api.Success)}
	failedAt := func(s int) api.Attempt { return api.Attempt{FinishedAt: noon.Add(time.Duration(s) * time.Second)} }
	for want, attempts := range map[string][]api.Attempt{
		"0 0 0 0": nil,
		"1 2 2 2": {failedAt(2)},
		"1 2 2 3": {failedAt(2), failedAt(6)},
	} {
		var got []string
		for _, call := range newTree(top, api.Record{Attempts: attempts}, noon.Add(time.Hour)).Top.Calls {
			got = append(got, strconv.Itoa(call.Attempt))
			for _, below := range call.Calls {
				if below.Attempt != 0 {
					t.Errorf("a call of a call is told as of attempt %d", below.Attempt)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the calls are of attempts %q, want %s", got, want)
		}
	}
}
