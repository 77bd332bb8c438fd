package run

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

// strict is a kind that refuses every request.
type strict struct {
	Kind
	asked *[]Input
}

func (s strict) Check(_ Request, ready Input) error {
	*s.asked = append(*s.asked, ready)
	return fault.New(fault.Unsupported, "not by me")
}

func TestKindsAreFoundByTheNameOfTheUnits(t *testing.T) {
	one, two := &strict{}, &strict{}
	kinds := Kinds{"capsule": one, "agentic_unit": one, "remote": two}
	for name, want := range map[string]Kind{"capsule": one, "agentic_unit": one, "remote": two} {
		if got, err := kinds.Of(&unit.Unit{Name: "u", Kind: unit.Kind(name)}); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	got, err := kinds.Of(&unit.Unit{Name: "u", Kind: "web\nassembly"})
	if got != nil || !fault.Is(err, fault.Unsupported) {
		t.Fatalf("%v, %v", got, err)
	}
	if said := fault.Public(err).Msg; said != `"u" is a unit of the kind "web\nassembly", which can't be run here` {
		t.Errorf("says %s", said)
	}
	if _, err := Kinds(nil).Of(&unit.Unit{}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without kinds: %v", err)
	}
}

func TestEachKindComesOnceAndInOrder(t *testing.T) {
	one, two, three := &strict{}, &strict{}, &strict{}
	kinds := Kinds{"d": one, "a": two, "c": two, "b": three}
	var all []Kind
	for kind := range kinds.Each() {
		all = append(all, kind)
	}
	if len(all) != 3 || all[0] != two || all[1] != three || all[2] != one {
		t.Errorf("%v", all)
	}
	n := 0
	for range kinds.Each() {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d came", n)
	}
}

func TestPrepareAsksTheKindFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "x")
	req := Request{Unit: unitWith(t, filesContract), Input: payload(t, `{"n":4}`), Files: []InputFile{{Field: "one", Path: filepath.Join(dir, "a.txt"), Ours: true}}}
	var asked []Input
	if _, err := req.Prepare(t.Context(), strict{asked: &asked}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("error %v", err)
	}
	if len(asked) != 1 || len(asked[0].Files) != 1 || !asked[0].Files[0].Ours || !strings.Contains(string(asked[0].Payload.JSON()), `"one":"a.txt"`) {
		t.Errorf("the kind was asked for %+v", asked)
	}
	if _, err := req.Prepare(t.Context(), anything{}); !fault.Is(err, fault.Input) {
		t.Errorf("the contract is not asked after it: %v", err)
	}
	req.Files = []InputFile{{Field: "one", Path: filepath.Join(dir, "nothing")}}
	if _, err := req.Prepare(t.Context(), strict{asked: &asked}); !fault.Is(err, fault.Input) || len(asked) != 1 {
		t.Errorf("the kind is asked for a file that isn't there: %v", err)
	}
}

func TestFilesThatHaveTheirNamesCountAsGiven(t *testing.T) {
	req := Request{Unit: unitWith(t, filesContract), Input: payload(t, `{"one":"d/a.txt"}`), Placed: []PlacedFile{{Source: "/x", Name: "d/a.txt", Field: "one"}}}
	ready, err := req.Prepare(t.Context(), anything{})
	if err != nil || len(ready.Files) != 1 || ready.Files[0].Source != "/x" {
		t.Errorf("%+v, %v", ready, err)
	}
	req.Input = payload(t, `{}`)
	if _, err := req.Prepare(t.Context(), anything{}); !fault.Is(err, fault.Input) {
		t.Errorf("a file that nothing names: %v", err)
	}
}

func TestNewIsARunThatWasAccepted(t *testing.T) {
	u := unitWith(t, filesContract)
	u.Kind, u.Policy.Limits = unit.Capsule, capsule.Limits{Timeout: time.Minute, PIDs: 7}
	fallback := runtime.Limits{Timeout: time.Hour, PIDs: 99, CPUs: 2}
	req := Request{Unit: u, Input: payload(t, `{"n":1}`), Extra: "mine"}
	t.Run("a root", func(t *testing.T) {
		before := time.Now().UTC()
		r := New("r1", req, Input{Payload: req.Input}, fallback)
		record := r.Record
		if r.State() != api.Idle || len(record.Transitions) != 1 || record.Transitions[0].Reason != "queued" || record.Status != api.Queued || record.CreatedAt.Before(before) || !record.Transitions[0].At.Equal(record.CreatedAt) {
			t.Errorf("%+v", record)
		}
		if record.ID != "r1" || record.Root != "r1" || record.Parent != "" || record.Kind != "capsule" || string(record.Input) != `{"n":1}` || record.Files == nil || r.Extra != "mine" {
			t.Errorf("%+v", record)
		}
		if r.Limits.Timeout != time.Minute || r.Limits.PIDs != 7 || r.Limits.CPUs != 2 {
			t.Errorf("limits %+v", r.Limits)
		}
	})
	t.Run("one that is called has its own id on the path", func(t *testing.T) {
		lineage := NewLineage("root", u).Child("", u, time.Time{})
		called := req
		called.Lineage, called.Timeout = &lineage, time.Second
		r := New("r2", called, Input{}, fallback)
		if r.Record.Root != "root" || r.Record.Parent != "root" || r.Lineage.Path[1].Run != "r2" || r.Lineage.Path[0].Run != "root" || r.Limits.Timeout != time.Second {
			t.Errorf("%+v, %+v", r.Record, r.Lineage)
		}
	})
}

func TestWhatIsToldOfARun(t *testing.T) {
	host, told := &fakeHost{}, []Event{}
	r := runIn(api.Running)
	r.Lineage.Parent = "p"
	r.LedBy(host, func(e Event) { told = append(told, e) })
	r.Warn("%d lines were cut", 3)
	r.Log(runtime.LogLine{Text: "hello"})
	r.Built(runtime.BuildEvent{Step: "1"})
	if len(told) != 3 || len(host.noted) != 3 || len(host.saved) > 0 {
		t.Fatalf("told %+v, noted %+v", told, host.noted)
	}
	for _, e := range told {
		if e.Run != "r1" || e.Unit != "u" || e.Parent != "p" {
			t.Errorf("whose is %+v", e)
		}
	}
	if told[0].Warning != "3 lines were cut" || told[1].Log.Text != "hello" || told[2].Build.Step != "1" || r.Record.Warnings[0] != "3 lines were cut" {
		t.Errorf("told %+v, record %+v", told, r.Record.Warnings)
	}
	r.LedBy(host, nil) // nobody is told, and it is noted all the same
	if r.Warn("x"); len(host.noted) != 4 || r.Observer() != nil {
		t.Errorf("noted %+v", host.noted)
	}
}

func TestTextsOfOthersAreBounded(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"short", 5, "short"}, {"longer", 5, "longe…"}, {"aü", 2, "a…"}, {"", 0, ""}} {
		if got := Bounded(c.text, c.limit); got != c.want {
			t.Errorf("%q within %d is %q", c.text, c.limit, got)
		}
	}
	_, err := contract.Decode([]byte(`[1]`), 0)
	if got := Undecodable(err); got.Message == "" || strings.HasPrefix(got.Message, "the payload ") {
		t.Errorf("%+v", got)
	}
	if err := StorageFault(io.ErrShortWrite); !fault.Is(err, fault.Unavailable) || !errors.Is(err, io.ErrShortWrite) || strings.Contains(fault.Public(err).Msg, "short") {
		t.Errorf("%v", err)
	}
}

func TestASourceRemembersItsOwnError(t *testing.T) {
	torn := errors.New("torn")
	for _, c := range []struct {
		name string
		from io.Reader
		want error
	}{
		{"none at its end", strings.NewReader("all"), nil},
		{"that of the reader", io.MultiReader(strings.NewReader("some"), failing{torn}), torn},
	} {
		s := &Source{Reader: c.from}
		if _, err := io.ReadAll(s); !errors.Is(err, c.want) || !errors.Is(s.Err, c.want) {
			t.Errorf("%s: read %v, remembered %v", c.name, err, s.Err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestLinesThatCameAfterOthers(t *testing.T) {
	if got := (Lines{Stdout: 5, Stderr: 3}).Minus(Lines{Stdout: 2, Stderr: 3}); got != (Lines{Stdout: 3}) {
		t.Errorf("%+v", got)
	}
}

func TestFieldsAreNamedAsTheyAreGiven(t *testing.T) {
	for pointer, want := range map[string]string{"/one": "one", "/deep/one": "deep.one", "/many/3": "many", "/3": "3"} {
		if got := FieldOf(pointer); got != want {
			t.Errorf("%s is %q", pointer, got)
		}
	}
}

func unitWith(t *testing.T, text string) *unit.Unit {
	t.Helper()
	agreed, findings := contract.Parse([]byte(text))
	if agreed == nil {
		t.Fatal(findings)
	}
	return &unit.Unit{Name: "u", Contract: agreed}
}

func payload(t *testing.T, text string) contract.Payload {
	t.Helper()
	p, err := contract.Decode([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
