package httpapi

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const tarType = "Content-Type: application/x-tar"

func TestAnUploadedUnitIsSetBackAndRemoved(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	first := decode[api.Unit](t, s.do("PUT", "/v1/units/mine", archive(t, "mine"), tarType).wants(t, 201))
	changed := strings.Replace(archive(t, "mine"), "FROM base:1", "from base:1", 1)
	second := decode[api.Unit](t, s.do("PUT", "/v1/units/mine", changed, tarType).wants(t, 201))
	list := decode[struct{ Versions []api.UnitVersion }](t, s.do("GET", "/v1/units/mine/versions", "").wants(t, 200)).Versions
	if len(list) != 2 || list[0].Version != second.Version || !list[0].Current || list[1].Version != first.Version || list[1].Current {
		t.Errorf("versions %+v", list)
	}
	back := decode[api.Unit](t, s.do("POST", "/v1/units/mine/rollback", `{"version":"`+first.Version+`"}`).wants(t, 200))
	if back.Version != first.Version {
		t.Errorf("rolled back to %s, not %s", back.Version, first.Version)
	}
	s.do("POST", "/v1/units/mine/rollback", `{"version":"0123456789abcdef"}`).wants(t, 404)
	s.do("POST", "/v1/units/mine/rollback", `{"to":"`+first.Version+`"}`).wants(t, 400)
	s.do("DELETE", "/v1/units/mine?now=true", "").wants(t, 400)
	s.do("DELETE", "/v1/units/mine", "").wants(t, 204)
	s.do("GET", "/v1/units/mine", "").wants(t, 404)
	s.do("DELETE", "/v1/units/mine", "").wants(t, 404)
	s.do("DELETE", "/v1/units/actor", "").wants(t, 409) // it is kept in a directory
	s.do("GET", "/v1/units/nobody/versions", "").wants(t, 404)
}

func TestAUnitWithRunsIsRemovedByForceAlone(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.do("PUT", "/v1/units/mine", archive(t, "mine"), tarType).wants(t, 201)
	id := decode[api.Record](t, s.do("POST", "/v1/runs", `{"unit":"mine","input":{"do":"wait"}}`).wants(t, 202)).ID
	s.until(func() bool { return s.record(id).State == api.Running })
	refused := decode[httpwire.Problem](t, s.do("DELETE", "/v1/units/mine", "").wants(t, 409))
	if !strings.Contains(refused.Detail, id) || !strings.Contains(refused.Hint, "--force") {
		t.Errorf("refused with %+v", refused)
	}
	s.do("GET", "/v1/units/mine", "").wants(t, 200)
	s.do("DELETE", "/v1/units/mine?force=true", "").wants(t, 204)
	s.do("POST", "/v1/runs", `{"unit":"mine"}`).wants(t, 404)
	if state := s.record(id).State; state != api.Running {
		t.Errorf("its run is %s", state)
	}
	s.release <- struct{}{}
	s.until(func() bool { return s.record(id).Outcome == api.Success })
}

func (s *server) record(id string) api.Record {
	s.t.Helper()
	return decode[api.Record](s.t, s.do("GET", "/v1/runs/"+id, "").wants(s.t, 200))
}
