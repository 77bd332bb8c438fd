package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func tokensIn(t *testing.T) *Tokens { return NewTokens(filepath.Join(t.TempDir(), "tokens.json")) }

// refusal is why a token is refused; "": it isn't.
func refusal(t *testing.T, tokens *Tokens, token string) string {
	t.Helper()
	grant, known, err := tokens.Find(sha256.Sum256([]byte(token)))
	switch {
	case err == nil && known:
		return ""
	case err == nil:
		return "unknown"
	case !fault.Is(err, fault.Unauthorized) || !known || grant.Name != "" || grant.Scopes != nil:
		t.Errorf("%v of %+v, %v", err, grant, known)
	}
	return err.Error()
}

func TestATokenExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := tokensIn(t)
		token, err := tokens.Add(Grant{Name: "ci", Scopes: []Scope{Run}, Expires: time.Now().Add(time.Hour)})
		must(t, err)
		time.Sleep(time.Hour - time.Second)
		if said := refusal(t, tokens, token); said != "" {
			t.Error("before:", said)
		}
		time.Sleep(time.Second)
		if said := refusal(t, tokens, token); !strings.Contains(said, `"ci" expired at 20`) {
			t.Error("after:", said)
		}
		if _, err := tokens.Rotate("ci", 0); !fault.Is(err, fault.Conflict) {
			t.Error("rotated then:", err)
		}
	})
}

func TestARotatedTokenIsGoodForItsGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := tokensIn(t)
		is := Grant{Name: "ci", Scopes: []Scope{Run, Read}, Teams: []string{"a"}, Units: []string{"x"}, Limits: Limits{9, 8}, Expires: time.Now().Add(1000 * time.Hour).UTC()}
		first, err := tokens.Add(is)
		must(t, err)
		second, err := tokens.Rotate("ci", time.Hour)
		must(t, err)
		time.Sleep(time.Minute)
		third, err := tokens.Rotate("ci", time.Hour)
		must(t, err)
		grant, _, err := tokens.Find(sha256.Sum256([]byte(third)))
		if err != nil || grant.Holder() != is.Holder() || grant.Limits != is.Limits || !grant.Expires.Equal(is.Expires) {
			t.Errorf("the new one is %+v, %v", grant, err)
		}
		time.Sleep(59 * time.Minute)
		for token, want := range map[string]string{first: "was rotated", second: "", third: ""} {
			if said := refusal(t, tokens, token); (said == "") != (want == "") || !strings.Contains(said, want) {
				t.Errorf("%q, want %q", said, want)
			}
		}
		fourth, err := tokens.Rotate("ci", 0)
		must(t, err)
		for token, good := range map[string]bool{first: false, second: false, third: false, fourth: true} {
			if said := refusal(t, tokens, token); (said == "") != good {
				t.Errorf("without a grace: %q", said)
			}
		}
		for range maxEarlier {
			_, err = tokens.Rotate("ci", time.Hour)
			must(t, err)
		}
		if _, err = tokens.Rotate("ci", time.Hour); !fault.Is(err, fault.Conflict) {
			t.Error("once more:", err)
		}
		_, unknown := tokens.Rotate("nobody", 0)
		_, tooLong := tokens.Rotate("ci", maxGrace+1)
		if !fault.Is(unknown, fault.NotFound) || !fault.Is(tooLong, fault.Input) {
			t.Error(unknown, tooLong)
		}
	})
}

func TestLastUsesAreWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := tokensIn(t)
		for _, name := range []string{"ci", "gone", "idle"} {
			_, err := tokens.Add(Grant{Name: name, Scopes: []Scope{Read}})
			must(t, err)
		}
		file := usesFile(tokens.path)
		before, err := os.ReadFile(tokens.path)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		over := make(chan struct{})
		go func() { defer close(over); tokens.KeepUses(ctx, slog.New(slog.NewTextHandler(&log, nil))) }()
		used := func() map[string]bool {
			all, err := NewTokens(tokens.path).List() // as another process
			must(t, err)
			is := map[string]bool{}
			for _, token := range all {
				is[token.Name] = !token.Used.IsZero()
			}
			return is
		}
		tokens.Met(Grant{})
		time.Sleep(usesEvery + time.Second)
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Error("nothing was used:", err)
		}
		tokens.Met(Grant{Name: "ci"})
		tokens.Met(Grant{Name: "gone"})
		if used()["ci"] {
			t.Error("written at once")
		}
		time.Sleep(usesEvery)
		if is := used(); !is["ci"] || !is["gone"] || is["idle"] {
			t.Error("after a minute:", is)
		}
		first, err := os.Stat(file)
		must(t, err)
		time.Sleep(10 * usesEvery)
		if again, err := os.Stat(file); err != nil || !os.SameFile(first, again) {
			t.Error("written without a use:", err)
		}
		after, err := os.ReadFile(tokens.path)
		must(t, err)
		if !bytes.Equal(before, after) || first.Mode().Perm() != 0o600 {
			t.Error("the tokens' file was written, or mode", first.Mode())
		}
		must(t, tokens.Remove("gone"))
		tokens.Met(Grant{Name: "idle"})
		cancel()
		<-over
		raw, err := os.ReadFile(file)
		must(t, err)
		if text := string(raw); strings.Contains(text, "gone") || !strings.Contains(text, "idle") || log.Len() > 0 {
			t.Errorf("in the end %s %s", text, &log)
		}
		must(t, tokens.Remove("ci"))
		time.Sleep(time.Minute)
		_, err = tokens.Add(Grant{Name: "ci", Scopes: []Scope{Read}})
		must(t, err)
		if used()["ci"] {
			t.Error("what an earlier one of the name did counts")
		}
	})
}

func TestAnAdministratorGivesWhatItHas(t *testing.T) {
	t.Parallel()
	soon, later := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	admin := func(teams ...string) Grant { return Grant{Name: "boss", Scopes: []Scope{Admin}, Teams: teams} }
	limited := admin()
	limited.Units, limited.Limits, limited.Expires = []string{"x", "y"}, Limits{60, 5}, soon
	run := []Scope{Run}
	for name, c := range map[string]struct {
		by, asked Grant
		want      string // why it is refused; "": what it is, as the next says
		is        string
	}{
		"of the server, anything":     {admin(), Grant{Scopes: []Scope{Admin, Metrics}}, "", "n admin,metrics  "},
		"of a team, that by default":  {admin("a", "b"), Grant{Scopes: run}, "", "n run a "},
		"of a team, its own":          {admin("a", "b"), Grant{Scopes: []Scope{Admin}, Teams: []string{"b"}}, "", "n admin b "},
		"of a team, another":          {admin("a"), Grant{Scopes: run, Teams: []string{"a", "b"}}, "a team that isn't", ""},
		"of a team, the default one":  {admin("a"), Grant{Scopes: run, Teams: []string{"default"}}, "a team that isn't", ""},
		"of a team, metrics":          {admin("a"), Grant{Scopes: []Scope{Metrics}}, "the scope metrics", ""},
		"of the default team, no all": {admin("default"), Grant{Scopes: []Scope{Admin}}, "", "n admin default "},
		"no administrator":            {Grant{Name: "eve", Scopes: run}, Grant{Scopes: run}, "lacks the scope admin", ""},
		"limited, as it is":           {limited, Grant{Scopes: run}, "", "n run  x,y"},
		"limited, other units":        {limited, Grant{Scopes: run, Units: []string{"x", "z"}}, "units that you", ""},
		"limited, more requests":      {limited, Grant{Scopes: run, Limits: Limits{Rate: 61}}, "a limit above", ""},
		"limited, more runs":          {limited, Grant{Scopes: run, Limits: Limits{Runs: 6}}, "a limit above", ""},
		"limited, longer":             {limited, Grant{Scopes: run, Expires: later}, "a time after yours", ""},
	} {
		tokens := tokensIn(t)
		c.asked.Name = "n"
		_, err := tokens.KeeperFor(WithGrant(t.Context(), c.by)).Add(c.asked)
		all, _ := tokens.List()
		if c.want != "" {
			if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), c.want) || len(all) > 0 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || all[0].Grant().Holder() != c.is || all[0].Limits != c.by.Limits || !all[0].Expires.Equal(c.by.Expires) {
			t.Errorf("%s: %v, %+v", name, err, all)
		}
	}
}

func TestAnAdministratorOfATeamManagesItsTokensAlone(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	for name, g := range map[string]Grant{
		"mine": {Scopes: []Scope{Run}, Teams: []string{"a"}}, "both": {Scopes: []Scope{Run}, Teams: []string{"a", "b"}},
		"theirs": {Scopes: []Scope{Run}, Teams: []string{"b"}}, "nobodys": {Scopes: []Scope{Run}}, "operator": {Scopes: []Scope{Admin}},
		"watcher": {Scopes: []Scope{Metrics}, Teams: []string{"a"}},
	} {
		g.Name = name
		_, err := tokens.Add(g)
		must(t, err)
	}
	keeper := func(teams ...string) Keeper {
		return tokens.KeeperFor(WithGrant(t.Context(), Grant{Name: "boss", Scopes: []Scope{Admin}, Teams: teams}))
	}
	for team, want := range map[string][]string{"a": {"mine", "watcher"}, "default": {"nobodys"}} {
		all, err := keeper(team).List()
		must(t, err)
		var names []string
		for _, token := range all {
			names = append(names, token.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s has %q", team, names)
		}
	}
	_, none := keeper("a").Rotate("nothing", 0)
	for _, name := range []string{"both", "theirs", "nobodys", "operator"} {
		_, err := keeper("a").Rotate(name, 0)
		removed := keeper("a").Remove(name)
		same := func(err error) bool {
			return err != nil && err.Error() == strings.ReplaceAll(none.Error(), "nothing", name)
		}
		if !same(err) || !same(removed) {
			t.Errorf("%s: %v, %v, of none %v", name, err, removed, none)
		}
	}
	if _, err := keeper("a").Rotate("watcher", 0); !fault.Is(err, fault.Forbidden) {
		t.Errorf("one with more than it has: %v", err)
	}
	if _, err := keeper("a").Rotate("mine", 0); err != nil {
		t.Error(err)
	}
	must(t, keeper("a").Remove("mine"))
	if all, err := keeper().List(); len(all) != 5 || err != nil {
		t.Errorf("the server's sees %d, %v", len(all), err)
	}
}

func TestATokenIsLimitedToUnits(t *testing.T) {
	t.Parallel()
	ctx := WithGrant(t.Context(), Grant{Name: "ci", Scopes: []Scope{Run}, Teams: []string{"a"}, Units: []string{"sum", "a.own"}})
	for _, of := range []context.Context{ctx, ForOwner(ctx, Owner{"a", "ci"})} {
		for unit, may := range map[string]bool{"sum": true, "a.sum": true, "a.own": true, "b.sum": false, "own": false, "other": false} {
			if err := CheckUnit(of, unit); (err == nil) != may || err != nil && !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s: %v", unit, err)
			}
		}
	}
	if err := errors.Join(CheckUnit(WithServer(ctx), "other"), CheckUnit(WithOwner(ctx, Owner{"a", "ci"}), "other")); err != nil {
		t.Error("what the server does:", err)
	}
	if ReachOf(ctx).Key() == ReachOf(WithGrant(t.Context(), Grant{Name: "ci", Scopes: []Scope{Run}, Teams: []string{"a"}})).Key() {
		t.Error("reaches aren't told apart")
	}
}

func TestWhenATokenExpires(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for text, want := range map[string]string{
		"90d": "2026-04-02T03:04:05Z", "12h": "2026-01-02T15:04:05Z", "1h30m": "2026-01-02T04:34:05Z",
		"2027-01-31": "2027-01-31T00:00:00Z", "2027-01-31T13:00:00+01:00": "2027-01-31T12:00:00Z", "": "0001-01-01T00:00:00Z",
	} {
		if at, err := ParseExpiry(text, now); err != nil || at.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
	for _, text := range []string{"d", "-1d", "90 d", "99999d", "1d12h", "soon", "2027-13-01", "90"} {
		if at, err := ParseExpiry(text, now); !fault.Is(err, fault.Input) {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
	for text, want := range map[string]time.Duration{"": time.Hour, "0": 0, "0s": 0, "720h": maxGrace} {
		if grace, err := ParseGrace(text); err != nil || grace != want {
			t.Errorf("%q: %v, %v", text, grace, err)
		}
	}
	for _, text := range []string{"1d", "-1h", "721h", "x"} {
		if _, err := ParseGrace(text); !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", text, err)
		}
	}
	tokens := tokensIn(t)
	for name, g := range map[string]Grant{
		"past": {Expires: time.Now().Add(-time.Second)}, "far": {Expires: time.Now().Add(2 * maxLife)}, "team": {Teams: []string{"A"}},
		"unit": {Units: []string{"../x"}}, "units": {Units: make([]string, maxUnits+1)}, "teams": {Teams: make([]string, maxTeams+1)},
	} {
		g.Name, g.Scopes = "x", []Scope{Run}
		if _, err := tokens.Add(g); !fault.Is(err, fault.Input) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := GrantAsked(api.TokenRequest{Name: "x", Scopes: []string{"write"}}, now); !fault.Is(err, fault.Input) {
		t.Error("no scope:", err)
	}
}

// A file that grew beyond what is read would let nobody in.
func TestTheTokensOfATeamLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	tokens := tokensIn(t)
	boss := tokens.KeeperFor(WithGrant(t.Context(), Grant{Name: "boss", Scopes: []Scope{Admin}, Teams: []string{"a"}}))
	most := Token{
		Name: strings.Repeat("n", 63), SHA256: digest(""), Created: time.Now(), Expires: time.Now(), Scopes: Scopes, Limits: Limits{maxLimit, maxLimit},
		Teams: slices.Repeat([]string{strings.Repeat("t", 31)}, maxTeams), Units: slices.Repeat([]string{strings.Repeat("u", 63)}, maxUnits),
		Earlier: slices.Repeat([]Earlier{{digest(""), time.Now()}}, maxEarlier+1),
	}
	few := slices.Repeat([]Token{{Name: "x", Scopes: []Scope{Run}, Teams: []string{"a"}}}, maxOfTeam-1)
	must(t, tokens.change(func([]Token) ([]Token, error) { return few, nil }))
	if _, err := boss.Add(Grant{Name: "last", Scopes: []Scope{Run}}); err != nil {
		t.Error("the last one:", err)
	}
	if _, err := boss.Add(Grant{Name: "more", Scopes: []Scope{Run}}); !fault.Is(err, fault.TooLarge) {
		t.Error("one more:", err)
	}
	if _, err := tokens.Add(Grant{Name: "operator", Scopes: []Scope{Read}}); err != nil {
		t.Error("there is no room for others:", err)
	}
	raw, err := json.MarshalIndent(document{Tokens: []Token{most}}, "", "  ")
	must(t, err)
	if len(raw)*maxTokens > maxFile {
		t.Errorf("%d of %d bytes can't be read", maxTokens, len(raw))
	}
	err = tokens.change(func([]Token) ([]Token, error) { return []Token{{Name: strings.Repeat("n", maxFile)}}, nil })
	if !fault.Is(err, fault.TooLarge) {
		t.Error("more than can be read:", err)
	}
}

// When people asked last is kept beside the tokens: of those who did so last.
func TestLastUsesOfPeople(t *testing.T) {
	t.Parallel()
	u := newUses(filepath.Join(t.TempDir(), "tokens.json"))
	now := time.Now()
	for i := range maxUsers + 5 {
		u.note(fmt.Sprintf("user:%d", i), now.Add(time.Duration(i)*time.Hour))
	}
	u.note("gone", now)
	must(t, u.write(func() ([]Token, error) { return nil, nil }))
	raw, err := os.ReadFile(u.path)
	must(t, err)
	var kept usesDocument
	must(t, json.Unmarshal(raw, &kept))
	if _, old := kept.Used["user:4"]; old || len(kept.Used) != maxUsers || kept.Used["user:5"].IsZero() {
		t.Errorf("%d are kept", len(kept.Used))
	}
}
