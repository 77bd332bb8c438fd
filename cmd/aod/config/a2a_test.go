package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHowClientsOfA2AFindUnits(t *testing.T) {
	c := mustLoad(t, given{file: `a2a:
  root: hello
  auth: api_key
  public_url: https://AOD.example:8443
  grpc: 127.0.0.1:7071
`})
	want := A2AConfig{
		Enabled: true, Root: "hello", Auth: AuthAPIKey, AuthHeader: "X-API-Key", PublicURL: "https://aod.example:8443",
		Cards: CardsOpen, GRPC: "127.0.0.1:7071", Push: true,
	}
	if diff := cmp.Diff(want, c.A2A); diff != "" {
		t.Error(diff)
	}
}

func TestA2ASettingsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a2a: {root: Not-A-Name}":                     "can't be an image tag",
		"a2a: {auth_header: 'X Key'}":                 "isn't the name of a header",
		"a2a: {public_url: 'https://a.example/path'}": "more or less than scheme, host and port",
		"a2a: {public_url: 'ftp://a.example'}":        "more or less than scheme, host and port",
		"a2a: {public_url: 'https://user@a.example'}": "more or less than scheme, host and port",
		"a2a: {grpc: '7071'}":                         "isn't a host and a port",
		"no_auth: true\na2a: {grpc: '0.0.0.0:7071'}":  "everybody who can reach",
		"a2a: {pushh: true}":                          `there is no setting "a2a.pushh"`,
	} {
		_, err := load(t, given{file: text})
		if said := strings.Join(findings(t, err), "\n"); !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %q", text, said, want)
		}
	}
}

func TestTheBlockA2AOfAUnit(t *testing.T) {
	c := mustLoad(t, given{file: "unit:\n  a:\n    a2a: {private: true, tokens: [ci], rate: 6}\n  b: {queue: 3}\n"})
	want := map[string]UnitA2A{
		"a": {Enabled: true, Private: true, Tokens: []string{"ci"}, Rate: 6},
		"b": {Enabled: true, Rate: UnitsOwn},
		"c": {Enabled: true, Rate: UnitsOwn},
	}
	for name, want := range want {
		if diff := cmp.Diff(want, c.ForUnit(name).A2A); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if at := source(c, "unit.a.a2a.tokens"); at != "aod.yaml:3" {
		t.Errorf("its tokens come from %s", at)
	}
}
