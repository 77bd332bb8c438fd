package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestATokenIsMadeFoundAndRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server", "tokens.json")
	server, command := NewTokens(path), NewTokens(path)
	if _, known, err := server.Find(sha256.Sum256([]byte("anything"))); known || err != nil {
		t.Errorf("without a file: %v, %v", known, err)
	}
	token, err := command.Add(Grant{Name: "ci", Scopes: []Scope{Run, Read}})
	must(t, err)
	grant, known, err := server.Find(sha256.Sum256([]byte(token)))
	if err != nil || !known || grant.Name != "ci" || grant.Allows(Run) != nil || grant.Allows(Read) != nil {
		t.Errorf("grant %+v, %v, %v", grant, known, err)
	}
	if err := grant.Allows(Upload); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "lacks the scope upload") {
		t.Errorf("a scope that it lacks: %v", err)
	}
	if err := (Grant{Scopes: []Scope{Admin}}).Allows(Upload); err != nil {
		t.Errorf("admin: %v", err)
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if strings.Contains(string(raw), token) || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v of\n%s", info.Mode(), raw)
	}
	if _, err := command.Add(Grant{Name: "ci", Scopes: []Scope{Read}}); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same name again: %v", err)
	}
	must(t, command.Remove("ci"))
	if _, known, err := server.Find(sha256.Sum256([]byte(token))); known || err != nil {
		t.Errorf("after it was revoked: %v, %v", known, err)
	}
	if err := command.Remove("ci"); !fault.Is(err, fault.NotFound) {
		t.Errorf("revoked again: %v", err)
	}
}

func TestEveryChangeOfTheFileCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	server, command := NewTokens(path), NewTokens(path)
	for range 50 { // faster than the clock of the file system
		token, err := command.Add(Grant{Name: "ci", Scopes: []Scope{Run}})
		must(t, err)
		if _, known, err := server.Find(sha256.Sum256([]byte(token))); !known || err != nil {
			t.Fatalf("a new one: %v, %v", known, err)
		}
		must(t, command.Remove("ci"))
		if _, known, err := server.Find(sha256.Sum256([]byte(token))); known || err != nil {
			t.Fatalf("a revoked one: %v, %v", known, err)
		}
	}
}

// A file that has been as it is for long is kept in mind, and read again when it has changed: when
// another one has its name, and when the same one has another content of its size.
func TestAChangeOfASettledFileCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	server, command := NewTokens(path), NewTokens(path)
	token, err := command.Add(Grant{Name: "ci", Scopes: []Scope{Run}})
	must(t, err)
	finds := func(token string, want bool) {
		t.Helper()
		if _, known, err := server.Find(sha256.Sum256([]byte(token))); known != want || err != nil {
			t.Errorf("found: %v, %v", known, err)
		}
	}
	settles := func(ago time.Duration) {
		t.Helper()
		at := time.Now().Add(-ago)
		must(t, os.Chtimes(path, at, at))
	}
	settles(2 * time.Hour)
	finds(token, true)
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(raw, []byte(digest(token)), []byte(digest("another")), 1), 0o600))
	settles(time.Hour)
	finds(token, false)
	finds("another", true)
	must(t, command.Remove("ci"))
	settles(time.Hour)
	finds("another", false)
}

// Two changes within the same tick of a file system's clock leave the same time.
func TestAFileIsReadAgainUntilItHasSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	tokens, soon := NewTokens(path), time.Now().Add(time.Hour)
	token, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Run}})
	must(t, err)
	raw, err := os.ReadFile(path)
	must(t, err)
	for known, holder := range map[bool]string{true: token, false: "another"} {
		must(t, os.WriteFile(path, bytes.Replace(raw, []byte(digest(token)), []byte(digest(holder)), 1), 0o600))
		must(t, os.Chtimes(path, soon, soon))
		if _, found, err := tokens.Find(sha256.Sum256([]byte(token))); found != known || err != nil {
			t.Errorf("found: %v, %v", found, err)
		}
	}
}

func TestATokenSeesWhatItsScopesSay(t *testing.T) {
	with := func(name string, scopes ...Scope) context.Context {
		return WithGrant(t.Context(), Grant{Name: name, Scopes: scopes})
	}
	in := func(team, name string, scopes ...Scope) context.Context {
		return WithGrant(t.Context(), Grant{Name: name, Scopes: scopes, Teams: []string{team}})
	}
	mine, others, nobodys := Owner{"default", "ci"}, Owner{"research", "ci"}, Owner{Team: "default"}
	for name, c := range map[string]struct {
		ctx                   context.Context //nolint:containedctx // it is what is tried
		own, ofOthers, server bool            // what it sees of ci's, of the same name's in another team, and of nobody's
		anonymous             bool
	}{
		"whoever forgot to say so":     {t.Context(), false, false, false, true},
		"the server itself":            {WithServer(t.Context()), true, true, true, false},
		"what the server does for one": {WithOwner(t.Context(), Owner{"default", "ops"}), true, false, true, false},
		"the server's own token":       {with("", Admin), true, true, true, false},
		"an operator's":                {with("ops", Admin), true, true, true, false},
		"the scope read":               {with("ops", Read), true, false, true, false},
		"its maker":                    {with("ci", Run, Upload), true, false, false, false},
		"another one":                  {with("ops", Run), false, false, false, false},
		"no token":                     {with(""), false, false, false, true},
		"another team's reader":        {in("research", "eve", Read), false, true, false, false},
		"another team's administrator": {in("research", "eve", Admin), false, true, false, false},
		"its name in another team":     {in("research", "ci", Run), false, true, false, false},
	} {
		if Sees(c.ctx, mine) != c.own || Sees(c.ctx, others) != c.ofOthers || Sees(c.ctx, nobodys) != c.server || IsAnonymous(c.ctx) != c.anonymous {
			t.Errorf("%s: sees %v, %v and %v", name, Sees(c.ctx, mine), Sees(c.ctx, others), Sees(c.ctx, nobodys))
		}
	}
	ci := Grant{Name: "ci", Scopes: []Scope{Run}}
	if ci.Holder() == (Grant{Name: "ops", Scopes: []Scope{Run}}).Holder() || ci.Holder() == (Grant{Name: "ci", Scopes: []Scope{Read}}).Holder() {
		t.Error("holders aren't told apart")
	}
}

func TestTokensThatAreMadeAtOnceAreAllThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := NewTokens(path).Add(Grant{Name: "n" + string(rune('a'+i)), Scopes: []Scope{Read}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := NewTokens(path).List(); len(list) != 8 || err != nil {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

func TestAFileThatIsNoneGivesNobodyAccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	tokens := NewTokens(path)
	token, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Admin}})
	must(t, err)
	must(t, os.Chmod(path, 0o644))
	if _, known, err := tokens.Find(sha256.Sum256([]byte(token))); known || !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Public(err).Hint, "chmod 600") {
		t.Errorf("a file for others: %v, %v", known, err)
	}
	must(t, os.WriteFile(path, []byte(`{"tokens":[`), 0o600))
	must(t, os.Chmod(path, 0o600))
	if _, known, err := tokens.Find(sha256.Sum256([]byte(token))); known || !fault.Is(err, fault.Unavailable) {
		t.Errorf("half a file: %v, %v", known, err)
	}
	if err := tokens.Remove("ci"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a change of half a file: %v", err)
	}
}

func TestNamesAndScopesAreChecked(t *testing.T) {
	tokens := NewTokens(filepath.Join(t.TempDir(), "tokens.json"))
	for _, name := range []string{"", "A", "-x", "a/b", "a\nb", strings.Repeat("a", 64)} {
		if _, err := tokens.Add(Grant{Name: name, Scopes: []Scope{Read}}); !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := tokens.Add(Grant{Name: "ok", Scopes: nil}); !fault.Is(err, fault.Input) {
		t.Errorf("no scope: %v", err)
	}
	if scopes, err := ParseScopes([]string{"read,run", "read"}); err != nil || len(scopes) != 2 {
		t.Errorf("%q, %v", scopes, err)
	}
	if _, err := ParseScopes([]string{"write"}); !fault.Is(err, fault.Input) {
		t.Errorf("write: %v", err)
	}
}

func TestATokenHasLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	limits := Limits{Rate: 60, Runs: 5}
	token, err := NewTokens(path).Add(Grant{Name: "ci", Scopes: []Scope{Run}, Limits: limits})
	must(t, err)
	tokens := NewTokens(path)
	grant, known, err := tokens.Find(sha256.Sum256([]byte(token)))
	if err != nil || !known || grant.Limits != limits || MostRuns(WithGrant(t.Context(), grant)) != 5 || MostRuns(WithServer(t.Context())) != 0 {
		t.Errorf("%+v, %v, %v", grant, known, err)
	}
	for _, wrong := range []Limits{{Rate: -1}, {Runs: -1}, {Rate: maxLimit + 1}} {
		if _, err := tokens.Add(Grant{Name: "no", Scopes: []Scope{Run}, Limits: wrong}); !fault.Is(err, fault.Input) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestTeamsAreTheCallers adds to the teams of a file twice, as two requests do at once.
func TestTeamsAreTheCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	tokens := NewTokens(path)
	_, err := tokens.Add(Grant{Name: "ada", Scopes: []Scope{Read}, Teams: []string{"a", "b", "c"}})
	must(t, err)
	before := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, before, before)) // it isn't read again
	one := append(tokens.Teams(), "one")
	_ = append(tokens.Teams(), "other")
	if want := []string{"a", "b", "c", "one"}; !slices.Equal(one, want) {
		t.Errorf("the teams are %q, want %q", one, want)
	}
}
