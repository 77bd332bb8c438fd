package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const limit = 1 << 20

// claude is what an agent prints that tells all there is.
var claude = Result{
	Format: JSONL, Text: &Pick{At: "/result", When: map[string]any{"/type": "result"}}, Session: &Pick{At: "/session_id"}, Usage: &Pick{At: "/usage"},
	CostUSD: &Pick{At: "/total_cost_usd"}, Error: &Pick{At: "/result", When: map[string]any{"/is_error": true}},
}

func TestOutputsAreRead(t *testing.T) {
	one := Output{Text: `{"a":1}`, Value: map[string]any{"a": num("1")}}
	for name, c := range map[string]struct {
		result Result
		output string
		want   Output
	}{
		"a text":                             {Result{}, "hello\n\n", Output{Text: "hello"}},
		"a text with strange bytes":          {Result{}, "a\x00b\xffc", Output{Text: "ab\uFFFDc"}},
		"nothing":                            {Result{}, "", Output{}},
		"a document":                         {Result{Format: JSON}, ` {"a":1} `, Output{Text: `{"a":1}`, Value: map[string]any{"a": num("1")}}},
		"a place in a document":              {Result{Format: JSON, Text: &Pick{At: "/a/0"}}, `{"a":["x"]}`, Output{Text: "x", Value: "x"}},
		"a line, among others that are none": {claude, "starting…\n{\"type\":\"system\",\"session_id\":\"s\"}\n\n{\"type\":\"result\",\"result\":\"old\"}\n{\"type\":\"result\",\"result\":\"new\",\"total_cost_usd\":0.5,\"usage\":{\"n\":1}}\n{\"half", Output{Text: "new", Value: "new", Session: "s", Usage: []byte(`{"n":1}`), CostUSD: "0.5", Skipped: 2}},
		"an error":                           {claude, `{"type":"result","result":"no credit","is_error":true}`, Output{Text: "no credit", Value: "no credit", Failed: true, Reason: "no credit"}},
		"an error without a text":            {claude, `{"is_error":true,"result":3}`, Output{Failed: true}},
		"a cost that is none":                {claude, `{"type":"result","result":"","total_cost_usd":-1,"session_id":null}`, Output{Value: ""}},
		"a line that is too long":            {claude, strings.Repeat("x", maxLine+1) + "\n{\"type\":\"result\",\"result\":\"r\"}", Output{Text: "r", Value: "r", Skipped: 1}},
		"a line with too many values":        {claude, "{\"a\":[" + strings.Repeat("0,", maxValues) + "0]}\n{\"type\":\"result\",\"result\":\"r\"}", Output{Text: "r", Value: "r", Skipped: 1}},
		"a line that is too deep":            {claude, strings.Repeat("[", 10_000) + "\n{\"type\":\"result\",\"result\":\"r\"}", Output{Text: "r", Value: "r", Skipped: 1}},
		"a number that has to be the same":   {Result{Format: JSON, Text: &Pick{At: "/a", When: map[string]any{"/n": 1.0}}}, `{"a":"x","n":1e0}`, Output{Text: "x", Value: "x"}},
		"what keeps a schema, and no text that is looked for": {Result{Format: JSON}, `{"type":"result","result":"Done.","structured_output":{"a":1}}`, one},
		"what keeps a schema, beside the text":                {claude, `{"type":"result","result":"Done.","structured_output":{"a":1}}` + "\n" + `{"type":"system"}`, one},
		"what keeps a schema, at the end of a list":           {Result{Format: JSON}, `[{"type":"system"},{"type":"result","structured_output":{"a":1}}]`, one},
		"the last result, which has none":                     {claude, `{"type":"result","structured_output":{"a":1}}` + "\n" + `{"type":"result","result":"r","structured_output":null}`, Output{Text: "r", Value: "r"}},
		"a field of that name elsewhere":                      {Result{Format: JSON, Text: &Pick{At: "/a"}}, `{"a":"x","structured_output":{"a":1}}`, Output{Text: "x", Value: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadOutput(&Config{Result: c.result}, iotest.HalfReader(strings.NewReader(c.output)), limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOutputsThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		result Result
		output string
		says   string
	}{
		"a text that is too long":          {Result{}, strings.Repeat("x", limit+1), "more than 1048576 bytes"},
		"no document":                      {Result{Format: JSON}, "{\"secret-name\":1,\"secret-name\":x}", "not one JSON document (line 1"},
		"two documents":                    {Result{Format: JSON}, "{} {}", "not one JSON document"},
		"a document that is too deep":      {Result{Format: JSON}, strings.Repeat("[", 10_000), "not one JSON document"},
		"no line that is looked for":       {claude, "{\"type\":\"system\"}\n", "nothing in its output"},
		"a found text that is too long":    {Result{Format: JSONL, Text: &Pick{At: "/a"}}, `{"a":"` + strings.Repeat("x", limit+1) + `"}`, "more than 1048576 bytes"},
		"lines of more than 64 MiB at all": {claude, strings.Repeat(strings.Repeat("x", 1000)+"\n", MaxOutput/1000+1), "more than 67108864 bytes"},
		"too many lines":                   {claude, strings.Repeat("{\n", maxLines+1), "more than 1048576 lines"},
		"one line of 100 MiB":              {claude, strings.Repeat("x", 100<<20), "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadOutput(&Config{Result: c.result}, strings.NewReader(c.output), limit)
			var wrong *OutputError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret-name") {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	t.Run("a file that can't be read isn't a fault of the program", func(t *testing.T) {
		for _, result := range []Result{{}, claude} {
			broken := errors.New("broken disk")
			if _, err := ReadOutput(&Config{Result: result}, iotest.ErrReader(broken), limit); !errors.Is(err, broken) {
				t.Error(err)
			}
		}
	})
}

// FuzzOutput holds the bounds of what is read, for any bytes.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello\n"))
	f.Add([]byte(`{"type":"result","result":"r","session_id":"s","usage":{},"total_cost_usd":1}`))
	f.Add([]byte("{\"is_error\":true}\n\x00\n[[[["))
	fuzzbound.Run(f, func(t *testing.T, output []byte) {
		for _, result := range []Result{{Format: Text}, {Format: JSON}, claude} {
			got, err := ReadOutput(&Config{Result: result}, strings.NewReader(string(output)), 100)
			var wrong *OutputError
			if err != nil && !errors.As(err, &wrong) {
				t.Fatal(err)
			}
			if err == nil && (len(got.Text) > 300 || strings.ContainsRune(got.Text, 0) || len(got.Session) > maxNote || len(got.Reason) > maxNote) {
				t.Errorf("%+v", got)
			}
		}
	})
}

func num(s string) json.Number { return json.Number(s) }
