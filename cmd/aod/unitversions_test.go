package main

import "testing"

func TestVersionsOfAUnit(t *testing.T) {
	alone(t)
	s := newFakeServer(t)
	code, stdout, stderr := command(t, t.Context(), "units", "versions", "hello", "--server", s.URL)
	if code != 0 {
		t.Errorf("code %d, stderr %s", code, stderr)
	}
	contains(t, stdout, "VERSION", "00000000000000a1  yes", "00000000000000a0 ")
	for _, c := range []struct {
		args          []string
		request, body string
	}{
		{[]string{"units", "rollback", "hello", "00000000000000a0"}, "POST /v1/units/hello/rollback", `{"version":"00000000000000a0"}`},
		{[]string{"units", "rm", "hello"}, "DELETE /v1/units/hello", ""},
		{[]string{"units", "rm", "--force", "hello"}, "DELETE /v1/units/hello?force=true", ""},
	} {
		code, _, stderr := command(t, t.Context(), append(c.args, "--server", s.URL)...)
		requests, bodies := s.seen()
		if last := len(requests) - 1; code != 0 || requests[last] != c.request || bodies[last] != c.body {
			t.Errorf("%q: code %d, %q with %q, stderr %s", c.args, code, requests, bodies, stderr)
		}
	}
	if code, _, _ := command(t, t.Context(), "units", "rollback", "hello", "--server", s.URL); code != 2 {
		t.Errorf("without a version: code %d", code)
	}
}
