package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWhereAValueComesFrom(t *testing.T) {
	file := "listen: 127.0.0.1:1\nqueue: 1\nhosts: [one, two]\n"
	cases := []struct {
		name        string
		given       given
		key         string
		want, where string
	}{
		{"the default, where nobody says anything", given{}, "queue", "100", "default"},
		{"the file wins over the default", given{file: file}, "queue", "1", "aod.yaml:2"},
		{"the environment wins over the file", given{file: file, env: map[string]string{"AOD_QUEUE": "2"}}, "queue", "2", "environment AOD_QUEUE"},
		{
			"a flag wins over the environment",
			given{file: file, env: map[string]string{"AOD_QUEUE": "2"}, args: []string{"--queue=3"}},
			"queue", "3", "flag --queue",
		},
		{"a flag that says the default wins as well", given{file: file, args: []string{"--queue=100"}}, "queue", "100", "flag --queue"},
		{"an empty variable is not set", given{file: file, env: map[string]string{"AOD_QUEUE": ""}}, "queue", "1", "aod.yaml:2"},
		{"a list replaces the one that it wins over", given{file: file, args: []string{"--hosts=three"}}, "hosts", "three", "flag --hosts"},
		{"a flag is repeated for a list", given{args: []string{"--hosts=b", "--hosts", "a"}}, "hosts", "b,a", "flag --hosts"},
		{"a variable holds a list with commas", given{env: map[string]string{"AOD_HOSTS": "b, a,,b"}}, "hosts", "b,a", "environment AOD_HOSTS"},
		{"a variable holds directories like PATH", given{env: map[string]string{"AOD_UNITS": "/a:/b"}}, "units", "/a:/b", "environment AOD_UNITS"},
		{"a flag without a value is true", given{args: []string{"--drain"}}, "drain", "true", "flag --drain"},
		{"a flag may be false", given{file: "drain: true", args: []string{"--drain=false"}}, "drain", "false", "flag --drain"},
		{"a variable may be 1", given{env: map[string]string{"AOD_DRAIN": "1"}}, "drain", "true", "environment AOD_DRAIN"},
		{"an alias stands for its value", given{file: "queue: &n 7\nretries: *n"}, "retries", "7", "aod.yaml:2"},
		{"zero needs no unit", given{file: "retention_age: 0\nretention_size: 0"}, "retention_age", "0s", "aod.yaml:1"},
		{"a block stands for files of a certificate", given{file: "tls: {cert: c.pem, key: /k.pem}"}, "tls", "files", "aod.yaml:1"},
		{"whose paths are settings", given{file: "tls: {cert: c.pem, key: /k.pem}"}, "tls.key", "/k.pem", "aod.yaml:1"},
		{"a flag wins over a block", given{file: "tls: {cert: c.pem, key: /k.pem}", args: []string{"--tls=self"}}, "tls", "self", "flag --tls"},
		{"an empty file sets nothing", given{file: "# nothing\n"}, "queue", "100", "default"},
		{"an empty document sets nothing", given{file: "---\n"}, "queue", "100", "default"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Value{}
			for _, v := range mustLoad(t, c.given).Values() {
				if v.Key == c.key {
					got = v
				}
			}
			if diff := cmp.Diff(Value{c.key, c.want, c.where}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheFileIsNamedAndNeverGuessed(t *testing.T) {
	t.Run("AOD_CONFIG names one", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "conf/aod.yaml", "queue: 5")
		c, err := Load(Options{Data: "/data", Getenv: func(name string) string {
			return map[string]string{"AOD_CONFIG": "conf/aod.yaml"}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := source(c, "queue"); c.Queue != 5 || got != "conf/aod.yaml:1" {
			t.Errorf("%d from %s", c.Queue, got)
		}
	})
	t.Run("the flag wins over AOD_CONFIG", func(t *testing.T) {
		c := mustLoad(t, given{file: "queue: 5", env: map[string]string{"AOD_CONFIG": "/nonexistent"}})
		if c.Queue != 5 {
			t.Error(c.Queue)
		}
	})
	t.Run("none is picked up from the working directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "aod.yaml", "queue: 5")
		c, err := Load(Options{Data: "/data"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Queue != 100 {
			t.Errorf("aod.yaml was read: %d", c.Queue)
		}
	})
}

func TestRelativePathsHaveABase(t *testing.T) {
	t.Chdir(t.TempDir())
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	write(t, "conf/aod.yaml", "units: [here, ../beside, /absolute/./x]\ntoken_file: token\ndata: d\n")
	c, err := Load(Options{
		File: "conf/aod.yaml", Data: "default-data",
		Flags: flagSet(t, []string{"--file-roots=files"}), Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(work, "conf")
	want := []string{
		filepath.Join(conf, "here"), filepath.Join(work, "beside"), "/absolute/x",
		filepath.Join(conf, "token"), filepath.Join(conf, "d"), filepath.Join(work, "files"),
	}
	got := append(append(append([]string{}, c.Units...), c.TokenFile, c.Data), c.FileRoots...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFollowsFromOtherSettings(t *testing.T) {
	c := mustLoad(t, given{args: []string{"--data=/elsewhere"}})
	if c.TokenFile != "/elsewhere/server/token" {
		t.Errorf("the token is in %s", c.TokenFile)
	}
	if c.Concurrency != 2*runtime.NumCPU() || c.Starts != runtime.NumCPU() {
		t.Errorf("concurrency %d, starts %d", c.Concurrency, c.Starts)
	}
	if got := source(c, "token_file"); got != "default" {
		t.Error(got)
	}
}

func TestSingleUnits(t *testing.T) {
	c := mustLoad(t, given{
		file: "queue: 7\nunit:\n  careful: {access: read-write}\n  own:\n    queue: 9\n    queue_wait: 2s\n    retries: 0\n    timeout: 30s\n    model_path: models/a.gguf\n    max_stdin: 1GiB\n  empty: {}\n",
		args: []string{"--retries=5"},
	})
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]UnitConfig{
		"careful":        {Concurrency: 1, Retries: UnitsOwn, Warm: UnitsOwn, Access: ReadWrite, MaxStdin: 50 << 20},
		"own":            {Queue: 9, QueueWait: 2 * time.Second, Retries: 0, Warm: UnitsOwn, Timeout: 30 * time.Second, ModelPath: filepath.Join(work, "models/a.gguf"), MaxStdin: 1 << 30},
		"empty":          {Retries: UnitsOwn, Warm: UnitsOwn, MaxStdin: 50 << 20},
		"not-configured": {Retries: UnitsOwn, Warm: UnitsOwn, MaxStdin: 50 << 20},
	}
	for name, want := range cases {
		want.A2A = UnitA2A{Enabled: true, Rate: UnitsOwn}
		if diff := cmp.Diff(want, c.ForUnit(name)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for key, want := range map[string]string{
		"unit.own.queue": "aod.yaml:5", "unit.own.queue_wait": "aod.yaml:6", "unit.own.retries": "aod.yaml:7", "unit.careful.queue": "default",
		"unit.careful.retries": "default", "unit.careful.timeout": "default",
	} {
		if got := source(c, key); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	_, err := load(t, given{
		file: `lisen: 127.0.0.1:7070
queue: many
queue: 5
grace: 10
hosts: [good.example.com, "https://bad.example.com", 7]
upload_limit: 3 parsecs
drain: "yes"
retries: 1.5
log_level: loud
units: ./here
origins:
  - "*"
unit:
  Not A Name: {}
  fine: {queue: -1, colour: blue, acess: read-only}
  bare:
data:
`,
		env:  map[string]string{"AOD_GRACE": "soon", "AOD_SOMETHING_ELSE": "is nobody's business"},
		args: []string{"--listen=everywhere", "--queue=3"},
	})
	want := []string{
		`aod.yaml:1: there is no setting "lisen"`,
		`aod.yaml:2: queue: it can't be the text "many"`,
		`aod.yaml:3: "queue" stands twice, first in line 2`,
		`aod.yaml:4: grace: "10" isn't a duration`,
		`aod.yaml:5: hosts: "https://bad.example.com" isn't a host's name`,
		`aod.yaml:5: hosts: an item can't be "7" with the YAML type "int"`,
		`aod.yaml:6: upload_limit: "3 parsecs" isn't a size`,
		`aod.yaml:7: drain: it can't be the text "yes"`,
		`aod.yaml:8: retries: it can't be "1.5" with the YAML type "float"`,
		`aod.yaml:9: log_level: "loud" isn't known here`,
		`aod.yaml:10: units: it can't be the text "./here"`,
		`aod.yaml:12: origins: * would let every web page call; name those that may`,
		`aod.yaml:14: unit: the name "Not A Name" can't be an image tag`,
		`aod.yaml:15: unit.fine.queue: -1 is out of range`,
		`aod.yaml:15: there is no setting "unit.fine.colour"`,
		`aod.yaml:15: there is no setting "unit.fine.acess"`,
		`aod.yaml:16: unit.bare: it must hold keys with values`,
		`aod.yaml:17: data: it can't be empty`,
		`environment AOD_GRACE: grace: "soon" isn't a duration`,
		`flag --listen: listen: "everywhere" isn't a host and a port`,
	}
	if diff := cmp.Diff(want, findings(t, err)); diff != "" {
		t.Error(diff)
	}
	for _, f := range fault.Public(err).Findings {
		if f.Hint == "" {
			t.Errorf("no hint: %s", f)
		}
	}
}

// A service's user stands in the home of whoever called it.
func TestAWorkingDirectoryThatIsGoneIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Options{Data: "/data"})
	_, unitErr := LoadUnit("unit.yaml")
	for _, err := range []error{err, unitErr} {
		if !fault.Is(err, fault.Input) || !strings.Contains(fault.Public(err).Msg, "working directory") || fault.Public(err).Hint == "" {
			t.Errorf("%v", err)
		}
	}
}
