package orchestrator

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// The canaries: a secret of the message, one that is written in two pieces, one across the cut
// of a long line, one in a PEM block, and an address.
const (
	canaryMessage = "sk-proj-inthemessage0123456789"
	canaryAddress = "ada.canary@example.org"
)

var canaries = []string{canaryMessage, canaryAddress, "intwopieces012345", "acrossacut0123456", "PEMCANARY"}

const leakyScript = `
m=$(cat)
printf 'sum %s\n' "$(printf %s "$m" | sha256sum | head -c 8)" >&2
printf 'two sk-abcintwo' >&2; printf 'pieces0123456789\nsaid: %s\n' "$m" >&2
head -c 16375 /dev/zero | tr '\0' x >&2; printf ' sk-acrossacut0123456789abc end\n' >&2
printf '%s\n' '-----BEGIN PRIVATE KEY-----' MIIBPEMCANARY '-----END PRIVATE KEY-----' after >&2
`

// leaky is a Service over a real engine with agents that tell all that they know: "says" answers
// its message, "fails" fails with it, and may be tried again once.
type leaky struct {
	*testing.T
	opts    settings
	service *Service
}

func newLeaky(t *testing.T) *leaky {
	engine := dockertest.Require(t)
	sources := t.TempDir()
	for name, yaml := range map[string]string{
		"says":  "agent:\n  command: " + shell(leakyScript+`printf 'you said %s' "$m"`) + "\n",
		"fails": "agent:\n  command: " + shell(leakyScript+`printf '{"why": "can not %s"}' "$m"; exit 75`) + "\n  result: {format: json, error: /why}\n  exit_codes: {\"75\": Transient}\n",
	} {
		write(t, filepath.Join(sources, name, "agent.yaml"), "name: "+name+"\nkind: agent\nimage: "+dockertest.Image+"\n"+yaml)
	}
	l := &leaky{T: t, opts: settings{
		Options: Options{
			Home: filepath.Join(t.TempDir(), "server"), Sources: []string{sources}, Concurrency: 2,
			RetryDelay: time.Millisecond, Retries: 1, Units: map[string]units.Settings{},
		},
		Containers: container.Options{Units: map[string]container.Extra{}, Labels: map[string]string{"aod.test": "orchestrator"}, UIDs: probeUIDs},
	}}
	l.start(engine)
	return l
}

func (l *leaky) start(engine container.Engine) {
	l.Helper()
	s, err := l.opts.service(engine)
	if err == nil {
		err = s.Start(trusted.Context(l))
	}
	if err != nil {
		l.Fatal(err)
	}
	l.service = s
	l.Cleanup(func() { _ = s.Close() })
}

func (l *leaky) submit(unit, text string) string {
	l.Helper()
	record, _, err := l.service.Submit(trusted.Context(l), spool.Submission{Unit: unit, Input: encoded(message(text))})
	if err != nil {
		l.Fatal(err)
	}
	l.clean("the answer to the submission", encoded(record))
	return record.ID
}

func (l *leaky) until(id string, is func(api.Record) bool) (record api.Record) {
	l.Helper()
	within(l.T, func() bool {
		var err error
		if record, err = l.service.Runs.Get(trusted.Context(l), id); err != nil {
			l.Fatal(err)
		}
		return is(record)
	}, func() string { return show(record) })
	return record
}

// clean wants no canary in what there is.
func (l *leaky) clean(where string, content []byte) {
	l.Helper()
	for _, canary := range canaries {
		if bytes.Contains(content, []byte(canary)) {
			l.Errorf("%q is in %s", canary, where)
		}
	}
}

// cleanHome wants no canary in the files of the server but the true inputs. The directories of
// the units hold their scripts, and that of an attempt what the agent is given.
func (l *leaky) cleanHome() {
	l.Helper()
	err := filepath.WalkDir(l.opts.Home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == layout.TrueInput {
			return err
		}
		if rel, err := filepath.Rel(l.opts.Home, path); err != nil || strings.HasPrefix(rel, layout.Units+"/") || len(l.trueInputs()) > 0 && strings.Contains(rel, "/1/") {
			return err
		}
		raw, err := os.ReadFile(path)
		l.clean(path, raw)
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
}

// shown returns what is told of a run: record, events and log.
func (l *leaky) shown(id string) string {
	l.Helper()
	var all bytes.Buffer
	record, err := l.service.Runs.Get(trusted.Context(l), id)
	if err != nil {
		l.Fatal(err)
	}
	all.Write(encoded(record))
	events, err := l.service.store.Events.List(trusted.Context(l), id, 0, 200) // those that there are now
	if err != nil {
		l.Fatal(err)
	}
	for _, event := range events {
		all.Write(event.Data)
	}
	for entry, err := range l.service.Feed.Log(trusted.Context(l), id, api.LogFilter{}) {
		if err != nil {
			l.Fatal(err)
		}
		all.WriteString(entry.Text + "\n")
	}
	return all.String()
}

func (l *leaky) trueInputs() []string {
	found, _ := filepath.Glob(filepath.Join(l.opts.Home, "runs", "*", layout.TrueInput))
	return found
}

func TestAnAgentsRunIsMasked(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	id := l.submit("says", "key "+canaryMessage)
	record := l.until(id, func(r api.Record) bool { return r.Outcome != "" })
	l.until(id, func(api.Record) bool { return l.service.jobs.count() == 0 })
	shown := l.shown(id)
	l.clean("what is shown", []byte(shown))
	for _, want := range []string{`{"text":"you said key ****6789"}`, `{"message":"key ****6789"}`, "two ****6789\nsaid: key ****6789\n", " ****9abc end\n", "[PEM block masked]\n\n\nafter\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	if !record.InputMasked {
		t.Errorf("the record doesn't say so: %s", show(record))
	}
	l.cleanHome()
	if _, _, err := l.service.Rerun(trusted.Context(t), id, "", api.Rerun{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rerun of a masked run: %v", err)
	}
}

func TestAnInputWithNothingToMaskIsRerun(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	id := l.submit("says", "nothing of the kind")
	if files := l.trueInputs(); len(files) > 0 {
		t.Errorf("it has a file with the true input: %v", files)
	}
	l.until(id, func(r api.Record) bool { return r.Outcome == api.Success })
	again, _, err := l.service.Rerun(trusted.Context(t), id, "", api.Rerun{})
	if err != nil {
		t.Fatal(err)
	}
	record := l.until(again.ID, func(r api.Record) bool { return r.Outcome != "" })
	if record.RerunOf != id || string(record.Output) != `{"text":"you said nothing of the kind"}` {
		t.Errorf("%s", show(record))
	}
	l.until(again.ID, func(api.Record) bool { return l.service.jobs.count() == 0 })
}

// Another process tries it again with the true input, and removes that in the end.
func TestAMaskedRunIsTriedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	l := newLeaky(t)
	engine := dockertest.Require(t)
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.opts.RetryDelay = time.Hour
	l.start(engine)
	id := l.submit("fails", canaryAddress+" "+canaryMessage)
	l.until(id, func(r api.Record) bool { return len(r.Attempts) == 1 })
	files := l.trueInputs()
	if len(files) != 1 {
		t.Fatalf("files with the true input: %v", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	l.clean("what is shown", []byte(l.shown(id)))
	if err := l.service.Close(); err != nil {
		t.Fatal(err)
	}
	l.cleanHome()
	l.opts.RetryDelay = time.Millisecond
	l.start(engine)
	record := l.until(id, func(r api.Record) bool { return r.Outcome != "" && len(l.trueInputs()) == 0 })
	shown := l.shown(id)
	if record.Error == nil || record.Error.Message != "can not ****.org ****6789" || len(record.Attempts) != 1 || record.Attempts[0].Error.Message != record.Error.Message {
		t.Errorf("%s", show(record))
	}
	if sum := "sum " + shown[strings.Index(shown, "sum ")+4:][:8] + "\n"; strings.Count(shown, sum) != 2 {
		t.Errorf("the second attempt had another input than the first: %s", shown)
	}
	l.clean("what is shown", []byte(shown))
	l.until(id, func(api.Record) bool { return l.service.jobs.count() == 0 })
	l.cleanHome()
}

// A command's runs are masked as those of a server.
func TestACommandsRunIsMasked(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	l := &leaky{T: t}
	record, err := p.ask("agent:\n  command: "+shell(leakyScript+`printf 'you said %s' "$m"`)+"\n", message(canaryMessage))
	if err != nil {
		t.Fatal(err)
	}
	l.clean("the record", encoded(record))
	if string(record.Output) != `{"text":"you said ****6789"}` || !record.InputMasked {
		t.Errorf("%s", show(record))
	}
}

// The output of a contract of its own is what the agent says, and so are its files.
func TestTypedOutputIsNotMasked(t *testing.T) {
	t.Parallel()
	p := newAgentProbe(t)
	write(t, filepath.Join(p.dir, "schema.json"), `{
		"input": {"type": "object", "properties": {"message": {"type": "string"}}},
		"output": {"type": "object", "properties": {"key": {"type": "string"}}}}`)
	record, err := p.ask("agent:\n  command: "+shell(`m=$(cat); echo "$m" > /io/output/key; printf '{"key": "%s"}' "$m"`)+"\n  result: {format: json}\n", message(canaryMessage))
	if err != nil {
		t.Fatal(err)
	}
	if string(record.Output) != `{"key": "`+canaryMessage+`"}` && string(record.Output) != `{"key":"`+canaryMessage+`"}` {
		t.Errorf("%s", show(record))
	}
	if raw, err := os.ReadFile(filepath.Join(p.out, "key")); err != nil || string(raw) != canaryMessage+"\n" {
		t.Errorf("the file: %q, %v", raw, err)
	}
	if !strings.Contains(string(record.Input), "****6789") {
		t.Errorf("input %s", record.Input)
	}
}
