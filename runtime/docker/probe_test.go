package docker

import (
	"testing"

	"github.com/docker/docker/api/types"
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

func TestTheNameOfAnEngineIsThatOfItsFirstComponent(t *testing.T) {
	for component, want := range map[string]string{"Engine": "Docker", "Podman Engine": "Podman", "Else": "Else", "": "Docker"} {
		if got := engineName(types.Version{Components: []types.ComponentVersion{{Name: component}, {Name: "runc"}}}); got != want {
			t.Errorf("%q is called %q, want %q", component, got, want)
		}
	}
	if got := engineName(types.Version{}); got != "Docker" {
		t.Errorf("an old engine is called %q", got)
	}
}
