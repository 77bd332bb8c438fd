package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsThatContradictOneAnother(t *testing.T) {
	cases := []struct {
		name  string
		given given
		want  []string // "" for none
	}{
		{
			"no_auth on every interface",
			given{file: "no_auth: true", args: []string{"--listen=:7070"}},
			[]string{"aod.yaml:1: no_auth: everybody who can reach :7070 could run what they like"},
		},
		{
			"no_auth on another address",
			given{args: []string{"--no-auth", "--listen=10.0.0.1:7070"}},
			[]string{"flag --no-auth: no_auth: everybody who can reach 10.0.0.1:7070 could run what they like"},
		},
		{
			"no_auth on a name that may be anybody's",
			given{args: []string{"--no-auth", "--listen=localhost.example.com:1"}},
			[]string{"flag --no-auth: no_auth: everybody who can reach localhost.example.com:1 could run what they like"},
		},
		{"no_auth on loopback", given{args: []string{"--no-auth"}}, nil},
		{"no_auth on loopback, by name", given{args: []string{"--no-auth", "--listen=localhost:0"}}, nil},
		{"no_auth on loopback, IPv6", given{args: []string{"--no-auth", "--listen=[::1]:0"}}, nil},
		{"no_auth on loopback, IPv4 as IPv6", given{args: []string{"--no-auth", "--listen=[::ffff:127.0.0.1]:0"}}, nil},
		{"a token on every interface", given{args: []string{"--listen=0.0.0.0:7070"}}, nil},
		{
			"a payload that no request can hold",
			given{args: []string{"--upload-limit=1KiB"}},
			[]string{"flag --upload-limit: payload_limit: a payload of 1MiB doesn't fit into a request of upload_limit, 1KiB"},
		},
		{
			"a unit with more time than there is",
			given{file: "max_timeout: 1m\nunit:\n  a: {timeout: 2m}\n  b: {timeout: 1m}"},
			[]string{"aod.yaml:3: unit.a.timeout: it is longer than max_timeout, 1m"},
		},
		{
			"a unit that changes things, twice at once",
			given{file: "unit:\n  a: {access: read-write, concurrency: 2}\n  b: {access: read-write, concurrency: 1}"},
			[]string{"aod.yaml:2: unit.a.concurrency: runs of a unit with access: read-write go one at a time"},
		},
		{
			"two at once",
			given{args: []string{"--no-auth", "--listen=:1", "--payload-limit=2KiB", "--upload-limit=1KiB"}},
			[]string{
				"flag --no-auth: no_auth: everybody who can reach :1 could run what they like",
				"flag --payload-limit: payload_limit: a payload of 2KiB doesn't fit into a request of upload_limit, 1KiB",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.given)
			var got []string
			if err != nil {
				got = findings(t, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
