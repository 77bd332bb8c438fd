package access

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// invited has a worker invited.
func invited(t *testing.T, tokens *Tokens, name string) (token string) {
	t.Helper()
	token, _, err := tokens.AddWorker(name, time.Now())
	must(t, err)
	return token
}

// hinted holds a fault against its kind and a part of its hint.
func hinted(t *testing.T, what string, err error, kind fault.Kind, hint string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Public(err).Hint, hint) {
		t.Errorf("%s: %v, hint %q", what, err, fault.Public(err).Hint)
	}
}

func TestAWorkerJoinsOnceWithItsInvitation(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	invitation, expires, err := tokens.AddWorker("big", time.Now())
	must(t, err)
	if life := time.Until(expires); life > 24*time.Hour || life < 24*time.Hour-time.Minute {
		t.Errorf("the invitation is good for %v", life)
	}
	all, err := tokens.Workers()
	if err != nil || len(all) != 1 || all[0].Name != "big" || !all[0].Expires.Equal(expires) {
		t.Fatalf("invited: %+v, %v", all, err)
	}
	own := NewToken()
	must(t, tokens.Enrol("big", own))
	must(t, tokens.Enrol("big", own)) // its answer was lost
	for token, want := range map[string]string{invitation: "unknown", own: ""} {
		if said := refusal(t, tokens, token); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
	if all, err = tokens.Workers(); err != nil || len(all) != 1 || !all[0].Expires.IsZero() || len(all[0].Earlier) > 0 {
		t.Errorf("joined: %+v, %v", all, err)
	}
	must(t, tokens.RemoveWorker("big"))
	if said := refusal(t, tokens, own); said != "unknown" {
		t.Errorf("removed: %q", said)
	}
	hinted(t, "removed again", tokens.RemoveWorker("big"), fault.NotFound, "aod worker ls")
}

func TestAnInvitationOfAWorkerExpires(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	token, _, err := tokens.AddWorker("big", time.Now().Add(-24*time.Hour-time.Second))
	must(t, err)
	if said := refusal(t, tokens, token); !strings.Contains(said, `the invitation of the worker "big" expired`) {
		t.Errorf("it is refused with %q", said)
	}
	hinted(t, "joining", tokens.Enrol("big", NewToken()), fault.Unauthorized, "aod worker rm big")
}

func TestOnlyATokenThatAWorkerMakesTakesThePlaceOfItsInvitation(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	first := invited(t, tokens, "big")
	invited(t, tokens, "small")
	_, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Admin}})
	must(t, err)
	whole := NewToken()
	for _, wrong := range []string{"", "x", whole[:len(whole)-1], whole + "A", strings.ToLower(whole), "\n" + whole, whole + "\n"} {
		hinted(t, wrong, tokens.Enrol("big", wrong), fault.Input, "aod work --join")
	}
	for _, name := range []string{"ci", "nobody", ""} {
		hinted(t, name, tokens.Enrol(name, whole), fault.NotFound, "aod worker ls")
	}
	must(t, tokens.Enrol("small", whole))
	hinted(t, "a copy of a worker", tokens.Enrol("big", whole), fault.Conflict, "join again")
	if said := refusal(t, tokens, first); said != "" {
		t.Errorf("nothing was done, and it is refused with %q", said)
	}
}

func TestAWorkersTokenTakesRunsAndDoesNothingElse(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	token := invited(t, tokens, "big")
	grant, _, err := tokens.Find(sha256.Sum256([]byte(token)))
	must(t, err)
	must(t, grant.Allows(Work))
	for _, scope := range append([]Scope{Questions}, Scopes...) {
		if err := grant.Allows(scope); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", scope, err)
		}
		hinted(t, string(scope), Grant{Name: "x", Scopes: []Scope{scope}}.Allows(Work), fault.Forbidden, "aod worker add NAME")
	}
	ctx := WithGrant(t.Context(), grant)
	teams, all := UnitsOf(ctx)
	if all || len(teams) > 0 || Sees(ctx, Owner{DefaultTeam, "big"}) || !IsAnonymous(ctx) || len(ApproverOf(ctx)) > 0 || ClientOf(ctx) != "big" {
		t.Errorf("it sees units of %q (%v), is an approver as %q", teams, all, ApproverOf(ctx))
	}
	if _, err := ParseScopes([]string{"work"}); !fault.Is(err, fault.Input) || strings.Contains(fault.Public(err).Hint, "work") {
		t.Errorf("for a token: %v", err)
	}
	_, err = tokens.Add(Grant{Name: "x", Scopes: []Scope{Work}})
	hinted(t, "made as a token", err, fault.Input, "aod worker add NAME")
}

func TestWorkersAndTokensShareTheirNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	invited(t, tokens, "big")
	_, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Run}})
	must(t, err)
	operator, team := tokens.KeeperFor(WithGrant(t.Context(), Grant{Scopes: []Scope{Admin}})), tokens.KeeperFor(WithGrant(t.Context(), Grant{Name: "boss", Scopes: []Scope{Admin}, Teams: []string{DefaultTeam}}))
	_, _, ofToken := tokens.AddWorker("ci", time.Now())
	hinted(t, "a token's name", ofToken, fault.Conflict, "aod token rm ci")
	_, _, again := tokens.AddWorker("big", time.Now())
	hinted(t, "a worker's name", again, fault.Conflict, "aod worker rm big")
	_, _, none := tokens.AddWorker("Big", time.Now())
	hinted(t, "no name", none, fault.Input, "a-z")
	_, ofWorker := operator.Add(Grant{Name: "big", Scopes: []Scope{Run}})
	hinted(t, "a worker's name for a token", ofWorker, fault.Conflict, "aod worker rm big")

	_, byFile := tokens.Rotate("big", 0)
	_, rotated := operator.Rotate("big", 0)
	_, got := operator.Get("big")
	for what, err := range map[string]error{"rotated in the file": byFile, "removed in the file": tokens.Remove("big"), "rotated": rotated, "removed": operator.Remove("big"), "asked for": got} {
		hinted(t, what, err, fault.Conflict, "aod worker rm big")
	}
	_, rotated = team.Rotate("big", 0)
	_, got = team.Get("big")
	for what, err := range map[string]error{"rotated": rotated, "removed": team.Remove("big"), "asked for": got} {
		hinted(t, what+" by a team's", err, fault.NotFound, "aod token ls")
	}
	hinted(t, "a token as a worker", tokens.RemoveWorker("ci"), fault.NotFound, "aod worker ls")
	byKeeper, err := operator.List()
	must(t, err)
	inFile, err := tokens.List()
	must(t, err)
	workers, err := tokens.Workers()
	must(t, err)
	if len(byKeeper) != 1 || len(inFile) != 1 || inFile[0].Name != "ci" || len(workers) != 1 || workers[0].Name != "big" {
		t.Errorf("tokens %+v and %+v, workers %+v", byKeeper, inFile, workers)
	}
}

func TestWhenAWorkerAskedLastIsKept(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	invited(t, tokens, "big")
	tokens.Met(Grant{Name: "big"})
	over, end := context.WithCancel(t.Context())
	end()
	tokens.KeepUses(over, slog.New(slog.DiscardHandler)) // writes once more in the end
	if all, err := NewTokens(tokens.path).Workers(); err != nil || len(all) != 1 || all[0].Used.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestWhatAllNodesHaveLetsThemJoinAndNothingElse(t *testing.T) {
	t.Parallel()
	tokens, shared := NewTokens(filepath.Join(t.TempDir(), "tokens.json")), NewToken()
	hinted(t, "share no token", tokens.Share("x"), fault.Input, "aod worker bundle")
	if err := tokens.Share(shared); err != nil {
		t.Fatal(err)
	}
	of := func(token string) (Grant, bool) {
		grant, known, err := tokens.Find(sha256.Sum256([]byte(token)))
		if err != nil {
			t.Error(err)
		}
		return grant, known
	}
	if grant, known := of(shared); !known || grant.Name != AnyNode || !grant.OfWorker() || grant.Allows(Read) == nil {
		t.Errorf("%v %+v", known, grant)
	}
	if api.IsTokenName(AnyNode) {
		t.Error("a worker may have the name of all nodes")
	}
	first, second := NewToken(), NewToken()
	for _, token := range []string{first, first, second} {
		if err := tokens.Admit("big", token); err != nil {
			t.Fatal(err)
		}
		if grant, known := of(token); !known || grant.Name != "big" || !grant.Expires.IsZero() {
			t.Errorf("%v %+v", known, grant)
		}
	}
	if _, known := of(first); known {
		t.Error("what the worker had before is good still")
	}
	hinted(t, "a copy", tokens.Admit("small", second), fault.Conflict, "copy")
	hinted(t, "no token", tokens.Admit("small", "x"), fault.Input, "aod work")
	if _, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Run}}); err != nil {
		t.Fatal(err)
	}
	hinted(t, "a token's name", tokens.Admit("ci", NewToken()), fault.Conflict, "aod token rm ci")
}
