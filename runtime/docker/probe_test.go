package docker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatConfinesContainersIsRead(t *testing.T) {
	for _, c := range []struct {
		options []string
		names   []string
		profile string
	}{
		{[]string{"name=seccomp,profile=default", "name=apparmor"}, []string{"apparmor", "seccomp"}, "default"},
		{[]string{"name=seccomp,profile=unconfined", "name=rootless", "name=cgroupns"}, []string{"cgroupns", "rootless", "seccomp"}, "unconfined"},
		{[]string{"seccomp", "name=userns,"}, []string{"seccomp", "userns"}, ""},
		{nil, nil, ""},
	} {
		names, profile := confinement(c.options)
		if diff := cmp.Diff(c.names, names); diff != "" || profile != c.profile {
			t.Errorf("%q: profile %q, names (-want +got):\n%s", c.options, profile, diff)
		}
	}
}
