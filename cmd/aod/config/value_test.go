package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestValuesReadAndWriteThemselves(t *testing.T) {
	var (
		n     int
		b     bool
		s     string
		d     time.Duration
		bytes int64
		texts []string
	)
	const refused = "!"
	cases := []struct {
		name  string
		into  value
		pairs map[string]string // text to what is shown
	}{
		{"a whole number", integer{&n, 1, 100}, map[string]string{
			"1": "1", "100": "100", "0": refused, "101": refused, "-1": refused, "": refused, "1.0": refused, "07": refused, "1e1": refused,
			"99999999999999999999": refused, "1 2": refused,
		}},
		{"a truth value", boolean{&b}, map[string]string{"true": "true", "False": "false", "1": "true", "0": "false", "yes": refused, "": refused}},
		{"a word", word{&s, []string{"text", "json"}}, map[string]string{"json": "json", "JSON": refused, "": refused}},
		{"a path", pathOf(&s), map[string]string{"/a b": "/a b", "a/../b": "a/../b", "": refused, "~": refused, "~user": "~user", "a\nb": refused, strings.Repeat("a", maxPath+1): refused}},
		{"a duration", duration{&d, 0, 168 * time.Hour}, map[string]string{
			"30s": "30s", "90s": "1m30s", "1h30m": "1h30m", "0.5s": "500ms", "168h": "168h", "0": "0s",
			"168h1s": refused, "5": refused, "-5s": refused, "5 s": refused, "1d": refused, "": refused, "1µs": refused, strings.Repeat("9", 80) + "h": refused,
		}},
		{"a size", size{&bytes, 0, 1 << 40}, map[string]string{
			"512MiB": "512MiB", "512m": "512MiB", "512 MB": "512MiB", "1.5g": "1536MiB", "100": "100B", "0": "0B", "1t": "1TiB", "1025": "1025B",
			"2t": refused, "-1": refused, "1e3": refused, "": refused, "1p": refused, "1GiBi": refused, "NaN": refused,
		}},
		{"an address", address(&s), map[string]string{
			"127.0.0.1:7070": "127.0.0.1:7070", ":0": ":0", "[::1]:65535": "[::1]:65535", "localhost:1": "localhost:1",
			"127.0.0.1": refused, "a:65536": refused, "a:http": refused, "a:": refused, "a:+1": refused, "a:007": refused, "http://a:1": refused, "a b:1": refused, "": refused,
		}},
		{"names of hosts", hosts(&texts), map[string]string{
			"AOD.example.com": "aod.example.com", "a,b,a": "a,b", "::1,10.0.0.1": "::1,10.0.0.1", "": "", "a_b": "a_b",
			"a:80": refused, "http://a": refused, "*.a": refused, "a/b": refused, "-a": refused, "a..b": refused, "fe80::1%eth0": refused, strings.Repeat("a.", 127) + "a": refused,
		}},
		{"web origins", origins(&texts), map[string]string{
			"https://App.example.com": "https://app.example.com", "https://a:443,http://a:80": "https://a,http://a", "http://[::1]:8080": "http://[::1]:8080",
			"https://a/": refused, "https://a/b": refused, "https://a?": refused, "https://a#": refused, "https://u@a": refused, "ftp://a": refused, "a": refused,
			"*": refused, "null": refused, "https://": refused, "https://a:99999": refused, "https://a:": refused, "https://a:443:443": refused, "https://::1": refused, "https://[a]": refused,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for text, want := range c.pairs {
				got := refused
				before := c.into.String()
				if err := c.into.set(text); err == nil {
					got = c.into.String()
				} else if c.into.String() != before {
					t.Errorf("%q was refused and kept all the same", text)
				}
				if got != want {
					t.Errorf("%q is read as %q, want %q", text, got, want)
				}
			}
		})
	}
}

func TestEverySettingHasAFlag(t *testing.T) {
	fs := pflag.NewFlagSet("aod", pflag.ContinueOnError)
	Flags(fs, "data", "units")
	var got, want []string
	fs.SortFlags = false
	fs.VisitAll(func(f *pflag.Flag) { got = append(got, f.Name) })
	for _, s := range new(Config).settings() {
		if s.key != "data" && s.key != "units" {
			want = append(want, s.flag())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if usage := fs.FlagUsages(); !strings.Contains(usage, "--queue-wait duration") || !strings.Contains(usage, "(AOD_QUEUE_WAIT) (default 10m)") {
		t.Error(usage)
	}
}
