package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/capsule/au"
)

func TestWhatItDoes(t *testing.T) {
	broken := iotest.ErrReader(errors.New("the disk is gone"))
	cases := []struct {
		name   string
		args   []string
		stdin  io.Reader
		code   int
		stdout string
		stderr string
	}{
		{"bytes that aren't text", nil, strings.NewReader("\x00\xff\n"), exitSuccess, "{\n  \"input_size\": 3,\n  \"sha256\": \"712450d3c4a79eea9509e75dc1dacdeff58034df538536cfae2da882bd8a0c50\"\n}\n", ""},
		{"no bytes at all", nil, strings.NewReader(""), exitSuccess, "{\n  \"input_size\": 0,\n  \"sha256\": \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n}\n", ""},
		{"a flag that it doesn't have", []string{"--secret=hunter2"}, nil, exitInvalid, "", "Error: Invalid arguments. Expected none, or --describe alone\n"},
		{"more than --describe", []string{"--describe", "hunter2"}, nil, exitInvalid, "", "Error: Invalid arguments. Expected none, or --describe alone\n"},
		{"a stdin that breaks", nil, broken, exitError, "", "Error: stdin can't be read: the disk is gone\n"},
		{"the model card, without a look at stdin", []string{"--describe"}, broken, exitSuccess, string(card), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(c.args, c.stdin, &stdout, &stderr)
			if code != c.code {
				t.Errorf("it exited with %d, want %d", code, c.code)
			}
			if diff := cmp.Diff(c.stdout, stdout.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.stderr, stderr.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItsSampleGivesWhatIsExpected(t *testing.T) {
	sample, err := os.Open(filepath.Join("sample", "input.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer sample.Close()
	want, err := os.ReadFile(filepath.Join("sample", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, compact bytes.Buffer
	if err := echo(sample, &stdout); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, stdout.Bytes()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), compact.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestItsModelCardIsOne(t *testing.T) {
	parsed, err := au.ParseCard(card)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("warnings: %v", parsed.Warnings)
	}
}
