package upstreams

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestARecordHasWhatWasAskedOfEachUpstream(t *testing.T) {
	r := &run.Run{}
	r.Record.Upstreams = []api.UpstreamUse{{Name: "earlier", Requests: 1}}
	p, _ := New(nil).Join(t.Context(), r, nil).(*part)
	p.Conclude()
	if all := r.Record.Upstreams; len(all) != 1 || all[0].Name != "earlier" {
		t.Errorf("a process that asked nothing leaves %+v of what an earlier one noted", all)
	}
	for _, e := range []upstream.Exchange{
		{Upstream: "weather", BytesIn: 5, BytesOut: 2},
		{Upstream: "maps", Rule: "method"},
		{Upstream: "weather", BytesIn: 1},
	} {
		if !p.count(e) {
			t.Errorf("%+v has no event", e)
		}
	}
	p.Conclude()
	want := []api.UpstreamUse{
		{Name: "maps", Requests: 1, Refused: 1}, {Name: "weather", Requests: 2, BytesIn: 6, BytesOut: 2},
	}
	if diff := cmp.Diff(want, r.Record.Upstreams); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheFirstRequestsHaveAnEvent(t *testing.T) {
	p, _ := New(nil).Join(t.Context(), &run.Run{}, nil).(*part)
	told := 0
	for range maxEvents + 5 {
		if p.count(upstream.Exchange{Upstream: "weather"}) {
			told++
		}
	}
	if told != maxEvents || p.by["weather"].Requests != maxEvents+5 {
		t.Errorf("%d events of %d requests", told, p.by["weather"].Requests)
	}
}
