//go:build linux

package pid1

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnviron(t *testing.T) {
	t.Setenv("INIT_TEST_A", "old")
	t.Setenv("INIT_TEST_B", "kept")
	for name, c := range map[string]struct{ entries, want []string }{
		"is ours":                     {nil, []string{"INIT_TEST_A=old", "INIT_TEST_B=kept"}},
		"with another value":          {[]string{"INIT_TEST_A="}, []string{"INIT_TEST_A=", "INIT_TEST_B=kept"}},
		"with the last of one name":   {[]string{"INIT_TEST_A=1", "INIT_TEST_A=2="}, []string{"INIT_TEST_A=2=", "INIT_TEST_B=kept"}},
		"with the last of a new name": {[]string{"INIT_TEST_C=1", "INIT_TEST_C=2"}, []string{"INIT_TEST_A=old", "INIT_TEST_B=kept", "INIT_TEST_C=2"}},
		"and longer names beside":     {[]string{"INIT_TEST_AA=1"}, []string{"INIT_TEST_A=old", "INIT_TEST_AA=1", "INIT_TEST_B=kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, entry := range environ(c.entries) {
				if strings.HasPrefix(entry, "INIT_TEST_") {
					got = append(got, entry)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
