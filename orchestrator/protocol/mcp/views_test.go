package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
)

type teamKey struct{}

// teamService shows each team the units that begin with its name.
type teamService struct{ *fakeService }

func (s teamService) Units(ctx context.Context) (own []api.Unit, err error) {
	all, err := s.fakeService.Units(ctx)
	team, _ := ctx.Value(teamKey{}).(string)
	for _, u := range all {
		if strings.HasPrefix(u.Name, team) {
			own = append(own, u)
		}
	}
	return own, err
}

func inTeam(team string) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, teamKey{}, team) }
}

func teamOf(ctx context.Context) (string, func(context.Context) context.Context) {
	team, _ := ctx.Value(teamKey{}).(string)
	return team, inTeam(team)
}

// of is the door to views for a team.
func (v *Views) of(team string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { v.ServeHTTP(w, r.WithContext(inTeam(team)(r.Context()))) })
}

func TestEachTeamHasItsTools(t *testing.T) {
	svc := teamService{newFake("a-one", "b-one")}
	v := NewViews(svc, teamOf, Options{})
	list := fmt.Sprintf(list, fmt.Sprintf(meta, Stateless))
	sees := func(team, tool string) bool {
		return strings.Contains(ask(t, v.of(team), "POST", list, stateless, "Mcp-Method: tools/list").Body.String(), tool)
	}
	session := sessionHeader + ": " + ask(t, v.of("a"), "POST", hello).Header().Get(sessionHeader)
	for range 2 {
		for team, other := range map[string]string{"a": "b", "b": "a"} {
			if !sees(team, team+"-one") || sees(team, other+"-one") {
				t.Errorf("the tools of %s aren't its own", team)
			}
		}
	}
	if w := ask(t, v.of("b"), "POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, session); w.Code != http.StatusNotFound {
		t.Errorf("a session of a's for b: %d %s", w.Code, w.Body)
	}
	ask(t, v.of("b"), "POST", hello)
	if n := v.sessions(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
	ask(t, v.of("a"), "DELETE", "", session)
	if n := v.sessions(); n != 1 {
		t.Errorf("%d sessions are open after an end", n)
	}
	svc.add("a-two", anySchema)
	for _, own := range v.all() { // as Watch does it, for whoever listens
		own.server.look(own.in(trusted.Context(t)))
	}
	if !sees("a", "a-two") || sees("b", "a-two") {
		t.Error("a new unit isn't a tool of its team alone")
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// Views are bounded: the one goes that wasn't used for longest, unless somebody has a session.
func TestViewsThatNobodyUsesGo(t *testing.T) {
	v := NewViews(teamService{newFake("a-one")}, teamOf, Options{})
	ask(t, v.of("held"), "POST", hello)
	for i := range maxViews + 2 {
		ask(t, v.of(fmt.Sprint("team", i)), "POST", "{}", stateless)
	}
	if len(v.byKey) != maxViews || v.byKey["held"] == nil || v.byKey["team0"] != nil || v.byKey[fmt.Sprint("team", maxViews+1)] == nil {
		t.Errorf("there are %d views", len(v.byKey))
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
