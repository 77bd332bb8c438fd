package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestValuesFillTheCommand(t *testing.T) {
	values := Values{
		Message: "say {run} {message}", Files: []string{"/io/input/a", "/io/input/b"}, Run: "7", Dir: "/w", Session: "s1",
		File: "/workspace/in", Output: "/workspace/out",
		Input: map[string]any{"lang": "de", "n": 3, "list": []any{"x"}, "nothing": nil},
	}
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"a value is not looked at again": {Config{Command: []string{"p", "--m={message}"}}, []string{"p", "--m=say {run} {message}"}},
		"several in one element":         {Config{Command: []string{"p", "a{run}b{dir}c{session}"}}, []string{"p", "a7b/wcs1"}},
		"escaped ones and other braces":  {Config{Command: []string{"p", `{{run}} {} {"a":{"b":1}}`}}, []string{"p", `{run} {} {"a":{"b":1}}`}},
		"files, an argument each":        {Config{Command: []string{"p", "{files}"}}, []string{"p", "/io/input/a", "/io/input/b"}},
		"files within an element":        {Config{Command: []string{"p", "f={files}"}}, []string{"p", "f=/io/input/a /io/input/b"}},
		"fields of the input":            {Config{Command: []string{"p", "{input.lang}{input.n}{input.list}{input.nothing}{input.none}"}}, []string{"p", `de3["x"]`}},
		"the patterns' files":            {Config{Command: []string{"p", "{file}", "{output}"}}, []string{"p", "/workspace/in", "/workspace/out"}},
		"a key that opens nothing":       {Config{Command: []string{"p", "{placeholder}"}}, []string{"p", "aod"}},
		"flags, sorted, before the end of the options": {
			Config{Command: []string{"p", "run", "--", "{message}"}, Flags: map[string]any{"verbose": true, "model": "m", "quiet": false, "x": nil, "n": 2}},
			[]string{"p", "run", "--model", "m", "--n", "2", "--verbose", "--", "say {run} {message}"},
		},
		"flags at the end": {Config{Command: []string{"p", "run"}, Flags: map[string]any{"a": "b"}}, []string{"p", "run", "--a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Command(&c.config, values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("what resumes comes with a resumed session alone", func(t *testing.T) {
		config := Config{Command: []string{"p", "--", "x"}, Resume: []string{"--resume", "{session}"}}
		values.Resume = true
		got, err := Command(&config, values)
		if diff := cmp.Diff([]string{"p", "--resume", "s1", "--", "x"}, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

func TestArgumentsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		message string
		says    string // "": it is taken
	}{
		"an option":                        {[]string{"p", "{message}"}, "-rf", "begins with"},
		"an option, and more behind it":    {[]string{"p", "{message}!"}, "--x", "begins with"},
		"an option behind --":              {[]string{"p", "--", "{message}"}, "-rf", ""},
		"an option within an element":      {[]string{"p", "--m={message}"}, "-rf", ""},
		"100 KiB":                          {[]string{"p", "--", "{message}"}, strings.Repeat("x", 100<<10), ""},
		"more than 100 KiB":                {[]string{"p", "--", "{message}"}, strings.Repeat("x", 100<<10+1), "102401 bytes"},
		"more than 512 KiB all together":   {[]string{"p", "--", "{message}", "{message}", "{message}", "{message}", "{message}", "{message}"}, strings.Repeat("x", 90<<10), "together"},
		"a NUL byte":                       {[]string{"p", "--", "{message}"}, "a\x00b", "NUL"},
		"a message that begins the option": {[]string{"p", "{input.none}{message}"}, "-x", "begins with"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Command(&Config{Command: c.command}, Values{Message: c.message})
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "-rf") {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// FuzzCommand holds that a value comes out of a template as it is, whatever it holds.
func FuzzCommand(f *testing.F) {
	f.Add("--m={message}", "hello {run}")
	f.Add("{{message}}{message}", "{{message}}")
	f.Add("{input.a}{", "}")
	fuzzbound.Run(f, func(t *testing.T, template, message string) {
		got, err := Command(&Config{Command: []string{"p", "x" + template}}, Values{Message: message})
		if err != nil {
			return
		}
		n := 0
		for _, name := range Placeholders(template) {
			if name == "message" {
				n++
			}
		}
		if len(got) != 2 || strings.Count(got[1], message) < n && message != "" && !strings.Contains(message+message, "x") && n == 1 {
			t.Errorf("%q became %q", template, got)
		}
	})
}
