package docker

import (
	"strings"
	"testing"
)

func TestFailuresOfPackageToolsAreExplained(t *testing.T) {
	for name, c := range map[string]struct {
		command, said, want string
	}{
		"apt as nobody":              {"RUN apt-get update", "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (13: Permission denied)", "USER root"},
		"apt as nobody, by its lock": {"RUN apt-get install jq", "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)", "USER root"},
		"no pip":                     {"RUN pip install requests", "/bin/sh: 1: pip: not found", "has no pip"},
		"no pip, as a module":        {"RUN python3 -m pip install requests", "/usr/bin/python3: No module named pip", "has no pip"},
		"apt's Python":               {"RUN pip install requests", "error: externally-managed-environment", "venv"},
		"a venv without pip":         {"RUN python3 -m venv /opt/venv", "The virtual environment was not created successfully because ensurepip is not available.", "python3-venv"},
		"no such package, or no way": {"RUN /opt/venv/bin/pip install requests", "ERROR: No matching distribution found for requests", "PIP_INDEX_URL"},
		"a package that apt lacks":   {"RUN apt-get install -y nothing", "E: Unable to locate package nothing", "apt-get update"},
		"anything else":              {"RUN make", "make: *** [all] Error 2", ""},
		"a page that isn't there":    {"RUN pip install https://example.org/x", "404 Not Found", ""},
		"another program":            {"RUN ./configure", "./configure: 3: cc: not found", ""},
	} {
		step := &buildStep{name: "[2/3] " + c.command, tail: []string{"before", c.said}}
		if got := step.hint(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
