package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// withDockerfile are the files of a capsule that is built by further lines.
func withDockerfile(lines string) map[string]string {
	files := maps.Clone(policedFiles(""))
	files["Dockerfile"] = lines + "\nCMD [\"/run\"]\n"
	return files
}

func TestADockerfileMayNotFetch(t *testing.T) {
	const from = "FROM " + dockertest.Image + "\n"
	for name, c := range map[string]struct{ dockerfile, file, directory, upload string }{
		"nothing":     {from + "ADD . /x", "", "", ""},
		"an address":  {from + "ADD http://127.0.0.1:9/x /x", "", "policy.build_fetch", "policy.build_fetch"},
		"a variable":  {"ARG U=http://127.0.0.1:9/x\n" + from + "ARG U\nADD $U /x", "", "policy.build_fetch", "policy.build_fetch"},
		"a base":      {"FROM 127.0.0.1:9/x", "", "policy.build_fetch", "policy.build_fetch"},
		"a copy":      {from + "COPY --from=127.0.0.1:9/x /x /x", "", "policy.build_fetch", "policy.build_fetch"},
		"a mount":     {from + "RUN --mount=from=127.0.0.1:9/x,target=/x ls", "", "policy.build_fetch", "policy.build_fetch"},
		"a frontend":  {"# syntax=evil/frontend\n" + from, "", "policy.build_fetch", "policy.build_fetch"},
		"for uploads": {from + "ADD http://127.0.0.1:9/x /x", "policy: {build_fetch: true}", "", "policy.uploads.build_fetch"},
		"allowed":     {from + "ADD http://127.0.0.1:9/x /x", "unit: {u: {policy: {build_fetch: true}}}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(from, rule string, err error) {
				t.Helper()
				public := fault.Public(err)
				switch {
				case rule == "" && err != nil:
					t.Errorf("%s: %v", from, err)
				case rule != "" && (!fault.Is(err, fault.Forbidden) || !strings.Contains(public.Msg, rule+" doesn't allow it that its Dockerfile fetches from elsewhere: ") ||
					!strings.Contains(public.Msg, "(Dockerfile:") || !strings.HasSuffix(public.Hint, "unit.u.policy.build_fetch: true")):
					t.Errorf("%s: %v, %q", from, err, public.Hint)
				}
			}
			service, _ := policed(t, c.file)
			_, _, err := service.Units.Put(trusted.Context(t), "u", uploadOf(t, withDockerfile(c.dockerfile)))
			check("upload", c.upload, err)

			service, units := policed(t, c.file)
			for name, text := range withDockerfile(c.dockerfile) {
				write(t, text, units, "u", name)
			}
			_, _, err = service.Submit(trusted.Context(t), spool.Submission{Unit: "u"})
			check("directory", c.directory, err)
		})
	}
}

func TestAnUploadedImageHasABoundOfSize(t *testing.T) {
	for name, c := range map[string]struct{ file, rule string }{
		"by default":      {"", ""},
		"of uploads":      {"policy: {uploads: {image: 99MiB}}", "policy.uploads.image"},
		"of all":          {"policy: {image: 1MiB}", "policy.image"},
		"of another unit": {"policy: {image: 1MiB}\nunit: {u: {policy: {image: 1GiB}}}", ""},
		"of this unit":    {"unit: {u: {policy: {image: 104857599B}}}", "unit.u.policy.image"},
	} {
		t.Run(name, func(t *testing.T) {
			service, _ := policed(t, c.file)
			_, _, err := service.Units.Put(trusted.Context(t), "u", uploadOf(t, withDockerfile("FROM "+dockertest.Image)))
			public := fault.Public(err)
			if (err != nil) != (c.rule != "") || err != nil && (!fault.Is(err, fault.Forbidden) || !strings.Contains(public.Msg, c.rule+" doesn't allow it an image of 100MiB") ||
				!strings.HasSuffix(public.Hint, "unit.u.policy.image: 100MiB")) {
				t.Errorf("%v, %q", err, public.Hint)
			}
			if _, err := service.Units.Show(trusted.Context(t), "u"); (err == nil) != (c.rule == "") {
				t.Errorf("it is there: %v", err)
			}
		})
	}
}

func TestTheNetworkOfBuildsIsTold(t *testing.T) {
	for name, c := range map[string]struct{ file, directory, upload string }{
		"by default":    {"", "none", "none"},
		"for all":       {"build_network: default", "default", "none"},
		"for the unit":  {"build_network: default\nunit: {u: {policy: {build_networks: [none, default]}}}", "default", "default"},
		"not directory": {"build_network: default\npolicy: {build_networks: [none]}", "none", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			service, _ := policed(t, c.file)
			u, _, err := service.Units.Put(trusted.Context(t), "u", uploadOf(t, withDockerfile("FROM "+dockertest.Image)))
			if err != nil || u.Policy.BuildNetwork != c.upload {
				t.Errorf("upload: %+v, %v", u.Policy, err)
			}
			service, units := policed(t, c.file)
			for name, text := range withDockerfile("FROM " + dockertest.Image) {
				write(t, text, units, "u", name)
			}
			if u, err = service.Units.Show(trusted.Context(t), "u"); err != nil || u.Policy.BuildNetwork != c.directory {
				t.Errorf("directory: %+v, %v", u.Policy, err)
			}
		})
	}
}
