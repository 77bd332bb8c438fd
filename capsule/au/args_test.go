package au

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestArgsWritesTheCommand(t *testing.T) {
	model := []string{"--model-path", "/m.gguf"}
	env := []string{"MODEL_PATH=/m.gguf"}
	cases := []struct {
		name string
		call Call
		want Command
	}{
		{"a flag and its value are two arguments", Call{Args: model}, Command{model, env, "/m.gguf"}},
		{"or one, with =", Call{Args: []string{"--model-path=/m.gguf"}}, Command{model, env, "/m.gguf"}},
		{"a model given beside the arguments", Call{ModelPath: "/m.gguf"}, Command{model, env, "/m.gguf"}},
		{"a model given as a variable", Call{Env: map[string]string{"MODEL_PATH": "/m.gguf"}}, Command{model, env, "/m.gguf"}},
		{"a path is cleaned", Call{ModelPath: "//m.gguf"}, Command{model, env, "/m.gguf"}},
		{"the prompt comes after the flags", Call{Args: append([]string{"read this"}, model...)}, Command{append(model, "read this"), env, "/m.gguf"}},
		{"a prompt as a flag stays one", Call{Args: append([]string{"--prompt", "x"}, model...)}, Command{append([]string{"--prompt", "x"}, model...), env, "/m.gguf"}},
		{"a prompt given beside the arguments", Call{Args: model, Prompt: "x"}, Command{append(model, "--prompt", "x"), env, "/m.gguf"}},
		{"a prompt that starts with a dash", Call{Args: append(model, "--", "-x")}, Command{append(model, "--", "-x"), env, "/m.gguf"}},
		{"a flag's value that starts with a dash", Call{Args: append(model, "--max-regions", "-5")}, Command{append(model, "--max-regions=-5"), env, "/m.gguf"}},
		{"an integer is written plainly", Call{Args: append(model, "--max-regions=+007")}, Command{append(model, "--max-regions", "7"), env, "/m.gguf"}},
		{"an empty value", Call{Args: append(model, "--lang", "")}, Command{append(model, "--lang", ""), env, "/m.gguf"}},
		{"a boolean alone is true", Call{Args: append([]string{"--fast"}, model...)}, Command{append([]string{"--fast"}, model...), env, "/m.gguf"}},
		{"a boolean that is false by default is left out", Call{Args: append(model, "--fast=false")}, Command{model, env, "/m.gguf"}},
		{"a boolean that is true by default is switched off", Call{Args: append(model, "--deskew=false")}, Command{append(model, "--deskew=false"), env, "/m.gguf"}},
		{"nothing is for a shell", Call{Args: append(model, "$(id); `id` | x\n")}, Command{append(model, "$(id); `id` | x\n"), env, "/m.gguf"}},
		{"several words stay several", Call{Args: append([]string{"one", "two words"}, model...)}, Command{append(model, "one", "two words"), env, "/m.gguf"}},
		{"words behind --", Call{Args: append(model, "--", "--fast", "b")}, Command{append(model, "--", "--fast", "b"), env, "/m.gguf"}},
		{"variables are sorted", Call{Args: model, Env: map[string]string{"Z": "1=2", "A": ""}}, Command{model, []string{"A=", "MODEL_PATH=/m.gguf", "Z=1=2"}, "/m.gguf"}},
	}
	card := parsed(t, ocrCard)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := card.Args(c.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArgsRefuses(t *testing.T) {
	cases := []struct {
		name, finding string
		call          Call
	}{
		{"a required flag that is missing", "(root): the string --model-path is required (give --model-path or $MODEL_PATH)", Call{}},
		{"--describe", "/args/0: --describe prints the model card and runs nothing", Call{Args: []string{"--describe"}}},
		{"--describe with a value", "/args/0: --describe prints the model card and runs nothing", Call{Args: []string{"--describe=true"}}},
		{"a flag that the card hasn't", `/args/0: the unit has no flag "--help" (its model card has --deskew, --fast, --lang, --max-regions, --model-path)`, Call{Args: []string{"--help"}}},
		{"a short flag", "/args/0: the unit has no such short flag (its model card has --deskew, --fast, --lang, --max-regions, --model-path; a text that starts with - goes after --)", Call{Args: []string{"-f"}}},
		{"a flag at the end without its value", "/args/0: the flag --lang needs a value (write --lang=value)", Call{Args: []string{"--lang"}}},
		{"a flag before another one without its value", "/args/0: the flag --lang needs a value (write --lang=value)", Call{Args: []string{"--lang", "--fast"}}},
		{"a text for an integer", "/args/0: the value of --max-regions must be a whole number", Call{Args: []string{"--max-regions", "many"}}},
		{"a fraction for an integer", "/args/0: the value of --max-regions must be a whole number", Call{Args: []string{"--max-regions=1.5"}}},
		{"an integer of 65 bits", "/args/0: the value of --max-regions must be a whole number", Call{Args: []string{"--max-regions=9223372036854775808"}}},
		{"a word for a boolean", "/args/0: the value of --fast must be true or false", Call{Args: []string{"--fast=yes"}}},
		{"a word after a boolean", "/args/1: a boolean flag takes no word after it (write --name=false; if it is the prompt, put it after --)", Call{Args: []string{"--fast", "false"}}},
		{"a flag twice", "/args/1: --fast is given twice", Call{Args: []string{"--fast", "--fast"}}},
		{"a model in two places", "/model_path: --model-path is given twice", Call{Args: []string{"--model-path=/a"}, ModelPath: "/b"}},
		{"a model as a flag and as a variable", "/env/MODEL_PATH: --model-path is given twice", Call{Args: []string{"--model-path=/a"}, Env: map[string]string{"MODEL_PATH": "/a"}}},
		{"a relative model path", "/model_path: the value of --model-path must be an absolute path", Call{ModelPath: "m.gguf"}},
		{"a model path that leads away", `/model_path: the value of --model-path must not have ".." in it`, Call{ModelPath: "/models/../etc/passwd"}},
		{"a model path that is all", "/model_path: the value of --model-path names no file", Call{ModelPath: "//"}},
		{"a prompt in both forms", "/args/2: there is more than one prompt", Call{Args: []string{"--prompt", "a", "b"}}},
		{"a prompt in both forms, the other way round", "/args/1: the prompt is given twice, once as --prompt", Call{Args: []string{"a", "--prompt=b"}}},
		{"a NUL in a value", "/args/0: the value of --lang has a NUL in it", Call{Args: []string{"--lang=a\x00"}}},
		{"a NUL in a model path", "/model_path: the value of --model-path has a NUL in it", Call{ModelPath: "/a\x00"}},
		{"a prompt that isn't UTF-8", "/args/0: the prompt is not valid UTF-8", Call{Args: []string{"\xff"}}},
		{"a variable without a name", "/env/: this can't be the name of a variable", Call{Env: map[string]string{"": "x"}}},
		{"a variable with = in its name", "/env/A=B: this can't be the name of a variable", Call{Env: map[string]string{"A=B": "x"}}},
		{"a NUL in a variable", "/env/A: the value of the variable has a NUL in it", Call{Env: map[string]string{"A": "\x00"}}},
	}
	card := parsed(t, ocrCard)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := card.Args(c.call)
			if !fault.Is(err, fault.Input) {
				t.Fatalf("Args = %v", err)
			}
			for _, f := range fault.Public(err).Findings {
				if strings.HasPrefix(f.String(), c.finding) {
					return
				}
			}
			t.Errorf("no finding %q in %q", c.finding, fault.Public(err).Findings)
		})
	}
}

func TestArgsReportsAllAtOnceAndNoValue(t *testing.T) {
	_, err := parsed(t, ocrCard).Args(Call{
		Args: []string{"--nope=canary", "--max-regions=canary", "--prompt=canary", "canary", "--fast=canary"}, ModelPath: "canary", Env: map[string]string{"A": "canary\x00"},
	})
	public := fault.Public(err)
	if len(public.Findings) != 6 {
		t.Errorf("findings %q", public.Findings)
	}
	shown := err.Error() + public.Hint
	for _, f := range public.Findings {
		shown += f.String()
	}
	if strings.Contains(shown, "canary") {
		t.Errorf("Args showed %s", shown)
	}
}

func TestArgsKeepsToTheCard(t *testing.T) {
	plain := parsed(t, `{"name":"x","version":"1.0.0","description":"x","capabilities":[],"inputs":[{"media_type":"*/*","description":""}],"outputs":[{"media_type":"application/json","description":""}]}`)
	if _, err := plain.Args(Call{ModelPath: "/m"}); !fault.Is(err, fault.Input) {
		t.Errorf("a unit without model-path was given one: %v", err)
	}
	if cmd, err := plain.Args(Call{Args: []string{"x"}}); err != nil || len(cmd.Args) != 1 {
		t.Errorf("a prompt needs no place in the card: %v, %v", cmd, err)
	}
	asking := parsed(t, with(`"lang": {"type": "string", "description": "The language."}`, `"prompt": {"type": "string", "description": "What to do.", "default": null}, "sure": {"type": "boolean", "description": "x", "default": null}`))
	_, err := asking.Args(Call{ModelPath: "/m"})
	if got := len(fault.Public(err).Findings); got != 2 {
		t.Errorf("a required prompt and a required boolean: %v", err)
	}
	cmd, err := asking.Args(Call{ModelPath: "/m", Args: []string{"read", "--sure=false"}})
	if diff := cmp.Diff([]string{"--sure=false", "--model-path", "/m", "read"}, cmd.Args); err != nil || diff != "" {
		t.Errorf("a positional prompt is a prompt, and a required false is said: %v\n%s", err, diff)
	}
}

func TestArgsTakesTheShortFlagsOfTheCard(t *testing.T) {
	card, err := ReadCard([]byte(`{"name": "x", "version": "1", "config": {
		"-n": {"type": "integer"}, "lang": {"type": "string", "short": "l"}, "--quiet": {"type": "boolean", "short": "-q"}, "w": {"type": "number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, want []string }{
		{[]string{"-n", "5"}, []string{"-n", "5"}},
		{[]string{"-n=-5"}, []string{"-n", "-5"}},
		{[]string{"--n", "5"}, []string{"-n", "5"}}, // it has no other flag
		{[]string{"-l", "deu", "x"}, []string{"-l", "deu", "x"}},
		{[]string{"--lang", "deu"}, []string{"--lang", "deu"}},
		{[]string{"-q", "x"}, []string{"-q", "x"}},
		{[]string{"--quiet"}, []string{"--quiet"}},
		{[]string{"-w", "0.5"}, []string{"-w", "0.5"}},
		{[]string{"--w=1e3"}, []string{"--w", "1e3"}},
	} {
		got, err := card.Args(Call{Args: c.given})
		if diff := cmp.Diff(c.want, got.Args); diff != "" || err != nil {
			t.Errorf("%q: %v %s", c.given, err, diff)
		}
	}
	for _, refused := range [][]string{{"-x"}, {"-n"}, {"-n", "x"}, {"-w", "NaN"}, {"-w", "x"}, {"-q", "false"}, {"-l", "a", "--lang", "b"}, {"-ln"}} {
		if _, err := card.Args(Call{Args: refused}); !fault.Is(err, fault.Input) {
			t.Errorf("%q: %v", refused, err)
		}
	}
}

func TestArgsAreBounded(t *testing.T) {
	many := make([]string, MaxArgs+1)
	long := strings.Repeat("x", MaxArgBytes)
	cases := map[string]Call{
		"too many":       {Args: many},
		"one too long":   {Args: []string{long + "x"}},
		"a long prompt":  {Prompt: long + "x"},
		"too much":       {Args: []string{long, long, long, long, long, long, long, long, "x"}},
		"a long setting": {Env: map[string]string{"A": long + "x"}},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parsed(t, ocrCard).Args(call); !fault.Is(err, fault.TooLarge) {
				t.Errorf("Args = %v", err)
			}
		})
	}
}
