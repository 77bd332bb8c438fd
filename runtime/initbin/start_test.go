package initbin

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestStartMessageIsWhatInitReads(t *testing.T) {
	for _, c := range []struct {
		name    string
		message StartMessage
		want    string
	}{
		{"nothing to change", StartMessage{}, "\x00\x00\x00\x04\x00\x000\x00"},
		{
			"everything",
			StartMessage{Stdin: "/in", Stdout: "/out", Args: []string{"a", "", "é=\n"}, Env: []string{"A=b=c", "E="}},
			"\x00\x00\x00\x1c/in\x00/out\x003\x00a\x00\x00é=\n\x00A=b=c\x00E=\x00",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.message.Append([]byte("before"))
			if diff := cmp.Diff("before"+c.want, string(got)); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
	t.Run("as much as it takes", func(t *testing.T) {
		for _, m := range []StartMessage{
			{Args: []string{strings.Repeat("x", initreport.MaxStartBytes-len("\x00\x001\x00\x00"))}},
			{Args: slices.Repeat([]string{"x"}, initreport.MaxStartTexts-3)},
		} {
			if _, err := m.Append(nil); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestStartMessageRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		message StartMessage
		kind    fault.Kind
	}{
		{"a NUL in the name of stdin", StartMessage{Stdin: "a\x00"}, fault.Input},
		{"a NUL in the name of stdout", StartMessage{Stdout: "\x00a"}, fault.Input},
		{"a NUL in an argument", StartMessage{Args: []string{"a", "a\x00b"}}, fault.Input},
		{"a NUL in the environment", StartMessage{Env: []string{"A=\x00"}}, fault.Input},
		{"an entry without a value", StartMessage{Env: []string{"A"}}, fault.Input},
		{"an entry without a name", StartMessage{Env: []string{"=a"}}, fault.Input},
		{"an empty entry", StartMessage{Env: []string{""}}, fault.Input},
		{"a byte too many", StartMessage{Args: []string{strings.Repeat("x", initreport.MaxStartBytes-len("\x00\x001\x00\x00")+1)}}, fault.TooLarge},
		{"a text too many", StartMessage{Env: slices.Repeat([]string{"A=b"}, initreport.MaxStartTexts-2)}, fault.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.message.Append([]byte("before"))
			if !fault.Is(err, c.kind) || string(got) != "before" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("without telling what it says", func(t *testing.T) {
		_, err := StartMessage{Args: []string{"a", "secret\x00"}}.Append(nil)
		if err == nil || !strings.Contains(err.Error(), "argument 2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	})
}
