package au

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestAScriptGetsAnImageWithItsInterpreter(t *testing.T) {
	for line, want := range map[string]string{
		"\x7fELF":                          "FROM debian:trixie-slim\nCOPY unit /unit\nENTRYPOINT [\"/unit\"]\n",
		"":                                 "FROM debian:trixie-slim\nCOPY unit /unit\nENTRYPOINT [\"/unit\"]\n",
		"#!\n":                             "FROM debian:trixie-slim\nCOPY unit /unit\nENTRYPOINT [\"/unit\"]\n",
		"#!/bin/bash -e\n":                 "FROM debian:trixie-slim\nCOPY unit /unit\nENTRYPOINT [\"bash\",\"-e\",\"/unit\"]\n",
		"#! /usr/bin/perl\nuse x;":         "FROM debian:trixie-slim\nCOPY unit /unit\nENTRYPOINT [\"perl\",\"/unit\"]\n",
		"#!/usr/bin/env python3\r\n":       "FROM aod/base\nCOPY unit /unit\nENTRYPOINT [\"python3\",\"/unit\"]\n",
		"#!/usr/local/bin/python3.13 -I":   "FROM aod/base\nCOPY unit /unit\nENTRYPOINT [\"python3\",\"-I\",\"/unit\"]\n",
		"#!/usr/bin/env -S python -u -I\n": "FROM aod/base\nCOPY unit /unit\nENTRYPOINT [\"python3\",\"-u\",\"-I\",\"/unit\"]\n",
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := programImage(program); got != want || err != nil {
			t.Errorf("%q: %v\n%s", line, err, got)
		}
	}
}

func TestAScriptWhoseInterpreterNobodyHasHearsWhatWouldDo(t *testing.T) {
	for _, c := range []struct{ file, line, name, hint string }{
		{"count.js", "#!/usr/bin/env node\n", "a script for node,", "install -y --no-install-recommends nodejs "},
		{"count.rb", "#!/usr/bin/ruby\n", "a script for ruby,", `ENTRYPOINT ["ruby","/count.rb"]`},
		{"count.rb", "#!/usr/bin/ruby\n", "a script for ruby,", "mkdir count-unit && cp "},
		{"count me", "#!/usr/bin/ruby\n", "a script for ruby,", "a Dockerfile that installs it"},
		{"x", "#!/bin/$(id)\n", "a script for $(id),", "a Dockerfile that installs it"},
	} {
		program := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(program, []byte(c.line), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := programImage(program)
		public := fault.Public(err)
		if !fault.Is(err, fault.Input) || !strings.Contains(public.Msg, c.name) || !strings.Contains(public.Hint, c.hint) {
			t.Errorf("%q: %v\n%s", c.line, err, public.Hint)
		}
	}
}
