package docker

import "testing"

func TestNamesOfSpansHaveNoIDs(t *testing.T) {
	for path, want := range map[string]string{
		"/v1.41/containers/0123456789abcdef/start":            "/containers/{}/start",
		"/v1.41/containers/create":                            "/containers/create",
		"/containers/aod-01a1feba-b3df/archive":               "/containers/{}/archive",
		"/v1.45/images/aod-capsule/team.unit:0123456789/json": "/images/{}/json",
		"/v1.41/images/aod-capsule/json":                      "/images/{}/json",
		"/v1.41/volumes/aod-x":                                "/volumes/{}",
		"/v1.41/exec/0123/start":                              "/exec/{}/start",
		"/_ping":                                              "/_ping",
		"/v1.41/build":                                        "/build",
		"/":                                                   "/{}",
		"":                                                    "/{}",
		"/0123/0456":                                          "/{}",
	} {
		if got := withoutIDs(path); got != want {
			t.Errorf("%s is %s, not %s", path, got, want)
		}
	}
}
