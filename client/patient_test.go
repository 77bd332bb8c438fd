package client

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestAPatientClientWaitsForItsServer(t *testing.T) {
	var tries, told int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch tries++; tries {
		case 1:
			happened(w, 1, 2, 4)
		case 30: // far more than streamTries
			happened(w, 2, 4, 4)
			return
		}
		cut(w)
	}).Patient(2*time.Minute, func(err error) {
		if told++; !fault.Is(err, fault.Unavailable) || tries != awayTries {
			t.Errorf("told of %v at try %d", err, tries)
		}
	})
	got, err := numbers(c, t.Context(), 0)
	if diff := cmp.Diff([]int64{1, 2, 3, 4}, got); diff != "" || err != nil || told != 1 {
		t.Errorf("%s, error %v, told %d times", diff, err, told)
	}
}

func TestAPatientClientGivesUpInTheEnd(t *testing.T) {
	var tries int
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		cut(w)
	}).Patient(20*time.Second, func(error) {})
	_, err := numbers(c, t.Context(), 0)
	wantFault(t, err, fault.Unavailable, "is aod serve running")
	if tries < 9 || tries > 10 { // 0.1 s, 0.2 s, … and 5 s each
		t.Errorf("tried %d times", tries)
	}
}

func TestAPatientSubmissionIsMadeOnce(t *testing.T) {
	var mu sync.Mutex
	keys := map[string]int{}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys[r.Header.Get("Idempotency-Key")]++
		tries := keys[r.Header.Get("Idempotency-Key")]
		mu.Unlock()
		if tries < 20 {
			cut(w)
		}
		_, _ = io.WriteString(w, `{"id":"`+runID+`"}`)
	}).Patient(2*time.Minute, func(error) {})
	r, err := c.Runs.Submit(t.Context(), Submission{Unit: "hello"})
	if err != nil || r.ID != runID || len(keys) != 1 {
		t.Errorf("%q, %v, keys %v", r.ID, err, keys)
	}
}
