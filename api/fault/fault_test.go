package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestEveryKindHasItsRow(t *testing.T) {
	codes := map[string]Kind{}
	for k := range kinds {
		r := k.row()
		if r.code == "" || r.title == "" {
			t.Errorf("kind %d has no name or no title", k)
		}
		if other, taken := codes[r.code]; taken {
			t.Errorf("kinds %d and %d share the name %q", other, k, r.code)
		}
		codes[r.code] = k
		err := fmt.Errorf("operation: %w", New(k, "message"))
		if got := ExitCode(err); got < 2 || got > 130 {
			t.Errorf("%s: exit code %d is out of range", k, got)
		}
		if got := HTTPStatus(err); got < 400 || got > 599 {
			t.Errorf("%s: status %d isn't an error status", k, got)
		}
	}
}

func TestKindOf(t *testing.T) {
	cases := []struct {
		name string
		err  error
		want Kind
		exit int
	}{
		{"a wrapped fault keeps its kind", fmt.Errorf("load: %w", New(Input, "x")), Input, 2},
		{"the outermost fault wins", Wrap(Build, New(Input, "x"), "y"), Build, 125},
		{"a bare cancellation", fmt.Errorf("x: %w", context.Canceled), Cancelled, 130},
		{"a bare deadline", context.DeadlineExceeded, Deadline, 124},
		{"anything else is internal", errors.New("x"), Internal, 125},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := KindOf(c.err); got != c.want {
				t.Errorf("KindOf = %v, want %v", got, c.want)
			}
			if got := ExitCode(c.err); got != c.exit {
				t.Errorf("ExitCode = %d, want %d", got, c.exit)
			}
		})
	}
	if ExitCode(nil) != 0 || HTTPStatus(nil) != 200 {
		t.Error("nil isn't a fault")
	}
}

func TestEveryKindIsFoundByItsName(t *testing.T) {
	for k := range kinds {
		if got, ok := KindNamed(k.String()); !ok || got != k {
			t.Errorf("KindNamed(%q) = %v, %v", k, got, ok)
		}
	}
	for _, unknown := range []string{"", "Internal", "nonsense"} {
		if got, ok := KindNamed(unknown); ok || got != Internal {
			t.Errorf("KindNamed(%q) = %v, %v", unknown, got, ok)
		}
	}
}

func TestPublicHidesForeignErrors(t *testing.T) {
	got := Public(errors.New("password=hunter2"))
	if got.Msg != Internal.Title() {
		t.Errorf("Public showed %q", got.Msg)
	}
}

func TestFindingSaysWhere(t *testing.T) {
	cases := map[string]Finding{
		"agent.yaml:3":       {File: "agent.yaml", Line: 3, Pointer: "/x"},
		"schema.json#/input": {File: "schema.json", Pointer: "/input"},
		"Dockerfile":         {File: "Dockerfile"},
		"/name":              {Pointer: "/name"},
		"(root)":             {},
	}
	for want, f := range cases {
		if got := f.Where(); got != want {
			t.Errorf("Where() = %q, want %q", got, want)
		}
	}
}
