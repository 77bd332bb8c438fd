package strictyaml

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// flows are all texts of flow.yaml in the examples and in the docs.
func flows(t testing.TB) map[string][]byte {
	t.Helper()
	found, block := map[string][]byte{}, regexp.MustCompile("(?s)```yaml title=\"[^\"]*flow.yaml\"\n(.*?)```")
	for _, root := range []string{"../../../examples", "../../../docs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() != "flow.yaml" && filepath.Ext(path) != ".md" {
				return err
			}
			raw, err := os.ReadFile(path)
			if d.Name() == "flow.yaml" {
				found[path] = raw
				return err
			}
			for _, m := range block.FindAllSubmatch(raw, -1) {
				found[path] = m[1]
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// scalars are the pointers to all plain values below one.
func (e *Edit) scalars(at string, n *yaml.Node, each func(pointer string, n *yaml.Node)) {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		e.scalars(at+"/"+strictjson.Escape(n.Content[i].Value), n.Content[i+1], each)
	}
	if n.Kind == yaml.ScalarNode && at != "" {
		each(at, n)
	}
}

func TestAChangeOfOneValueKeepsEveryOtherByte(t *testing.T) {
	all, changes := flows(t), 0
	for path, raw := range all {
		e, err := NewEdit(path, raw)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		e.scalars("", e.root, func(pointer string, n *yaml.Node) {
			changes++
			same, err := e.SetText(pointer, n.Value)
			if _, isText := e.scalar(pointer); isText && (err != nil || !bytes.Equal(same.Raw, raw)) {
				t.Errorf("%s: the same %s is another text: %v\n%s", path, pointer, err, cmp.Diff(string(raw), string(same.Raw)))
			}
			for _, to := range []string{n.Value + " ü, {x}: #'\"", "true", "a\n b\n"} {
				next, err := e.SetText(pointer, to)
				if err != nil {
					t.Errorf("%s: %s can't become %q: %v", path, pointer, to, err)
					continue
				}
				if got, isText := next.scalar(pointer); got != to || !isText {
					t.Errorf("%s: %s is %q, not %q", path, pointer, got, to)
				}
				e.onlyThere(t, pointer, n, next)
			}
			if next, err := e.Remove(pointer); err != nil {
				t.Errorf("%s: %s can't be removed: %v", path, pointer, err)
			} else if next.find(pointer).value != nil {
				t.Errorf("%s: %s is still there", path, pointer)
			} else if back := len(raw) - len(next.Raw); back <= 0 {
				t.Errorf("%s: to remove %s has added %d bytes", path, pointer, -back)
			}
		})
	}
	if len(all) < 5 || changes < 100 {
		t.Errorf("%d files, %d values", len(all), changes)
	}
}

// scalar is a plain value, as the object around it tells of it.
func (e *Edit) scalar(pointer string) (text string, isText bool) {
	at := strings.LastIndex(pointer, "/")
	for _, one := range e.Entries(pointer[:at]) {
		if strictjson.Escape(one.Key) == pointer[at+1:] && one.IsPlain {
			return one.Text, one.IsText
		}
	}
	return "", false
}

// onlyThere proves that another text differs from one in the lines of a node alone.
func (e *Edit) onlyThere(t *testing.T, pointer string, n *yaml.Node, next *Edit) {
	t.Helper()
	last := n.Line + strings.Count(strings.TrimRight(string(e.Raw[e.start(n):e.end(n)]), "\n"), "\n")
	before, after := bytes.SplitAfter(e.Raw, []byte("\n")), bytes.SplitAfter(next.Raw, []byte("\n"))
	behind := len(before) - last
	if len(after) < n.Line-1+behind || !reflect.DeepEqual(before[:n.Line-1], after[:n.Line-1]) || !reflect.DeepEqual(before[last:], after[len(after)-behind:]) {
		t.Errorf("%s: other lines than those of %s have changed:\n%s", e.File, pointer, cmp.Diff(string(e.Raw), string(next.Raw)))
	}
}

func TestValuesComeAndGo(t *testing.T) {
	const text = `# first
nodes: # all
  one:   # the first
    run: "a"   # it runs
    with:
      # why
      x: 1 # one

      y: [1, # item
        2]
    next: {default: two} # on
  two: {run: b, with: {x: 'it''s', },} # short
  empty:
  long:
    ask: |
      Is it
      good?

  # the end
`
	e, err := NewEdit("flow.yaml", []byte(text))
	must(t, err)
	yes := func(name string, from string, to string, got *Edit, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if want := strings.Replace(text, from, to, 1); want != string(got.Raw) || want == text {
			t.Errorf("%s: %s", name, cmp.Diff(want, string(got.Raw)))
		}
	}
	set := func(from, to, pointer, value string) {
		t.Helper()
		got, err := e.SetYAML(pointer, value)
		yes(pointer+" "+value, from, to, got, err)
	}
	set("\"a\"", "\"b c\"", "/nodes/one/run", `"b c"`)
	set("x: 1 ", "x: 10 ", "/nodes/one/with/x", "10")
	set("[1, # item\n        2]", "[]", "/nodes/one/with/y", "[]")
	set("# on\n", "# on\n    timeout: 5m\n", "/nodes/one/timeout", "5m")
	set("# on\n", "# on\n    set: {a: 1}\n", "/nodes/one/set", "{a: 1}\n")
	set("\n        2]\n", "\n        2]\n      z: {a: 1}\n", "/nodes/one/with/z", "{a: 1}")
	set("'it''s', },}", "'it''s', }, next: end,}", "/nodes/two/next", "end")
	set("b, with", "c, with", "/nodes/two/run", "c")
	set("{x: 'it''s', }", "{}", "/nodes/two/with", "{}")
	set("empty:", "empty: {run: a}", "/nodes/empty", "{run: a}")
	set("{default: two}", "{default: two,\n error: end}", "/nodes/one/next", "{default: two,\n error: end}")
	set("x: 1 # one\n\n      y: [1, # item\n        2]", "y: 1\n      z: 2", "/nodes/one/with", "y: 1\nz: 2")
	said := func(from, to, pointer, value string) {
		t.Helper()
		got, err := e.SetText(pointer, value)
		yes(pointer+" "+value, from, to, got, err)
	}
	said("|\n      Is it\n      good?\n", "|-\n      Is [it]\n", "/nodes/long/ask", "Is [it]")
	said("good?\n", "good?\n    when: \"${{ state.x }}\"\n", "/nodes/long/when", "${{ state.x }}")
	said("'it''s'", "'isn''t, # {x}'", "/nodes/two/with/x", "isn't, # {x}")
	said("run: b", "run: 'b: c'", "/nodes/two/run", "b: c")
	gone := func(lost, pointer string) {
		t.Helper()
		got, err := e.Remove(pointer)
		yes("without "+pointer, lost, "", got, err)
	}
	gone("    run: \"a\"   # it runs\n", "/nodes/one/run")
	gone("    next: {default: two} # on\n", "/nodes/one/next")
	gone("run: b, ", "/nodes/two/run")
	gone(", with: {x: 'it''s', }", "/nodes/two/with")
	gone("  empty:\n", "/nodes/empty")
	for _, pointer := range []string{"", "/nothing/at", "/nodes/empty/run", "/nodes/one/run/x"} {
		if got, err := e.SetText(pointer, "x"); err == nil {
			t.Errorf("%s: %s", pointer, got.Raw)
		}
	}
	for _, text := range []string{`{"a": 1}`, "a: &x 1\nb: *x", "a: !!str 1", "a: 1\rb: 2"} {
		if e, err := NewEdit("flow.yaml", []byte(text)); err == nil {
			if got, err := e.SetText("/a", "other"); err == nil && string(got.Raw) != text {
				t.Errorf("%q became %q", text, got.Raw)
			}
		}
	}
	dos, err := NewEdit("flow.yaml", []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	must(t, err)
	got, err := dos.SetText("/nodes/long/ask", "One\ntwo\n")
	must(t, err)
	if want := strings.ReplaceAll(strings.Replace(text, "Is it\n      good?", "One\n      two", 1), "\n", "\r\n"); string(got.Raw) != want {
		t.Error(cmp.Diff(want, string(got.Raw)))
	}
}

func FuzzEdit(f *testing.F) {
	for _, raw := range flows(f) {
		f.Add(raw, "/nodes", "run", "a: 1\nb: [2]")
	}
	for _, text := range []string{"a: &x {b: 1}\nc: *x", "a: |2-\n   x\n  y\n\nb: >+\n  z\n\n", "{a: {}, b: , c}", "? a\n: b\n", "a: !!str\n  1", "a:\r\n  - 1\r\nb:\r\n", "\ufeffa: {b: 'c''d'}", "--- # x\na: 1\n..."} {
		f.Add([]byte(text), "", "a", "x")
		f.Add([]byte(text), "/a", "b", "x: 1")
	}
	fuzzbound.Run(f, func(t *testing.T, raw []byte, at, key, text string) {
		e, err := NewEdit("a.yaml", raw)
		if err != nil {
			return
		}
		pointer := at + "/" + strictjson.Escape(key)
		_ = e.Source(pointer)
		old, wasText := e.scalar(pointer)
		if next, err := e.SetText(pointer, text); err == nil {
			if got, isText := next.scalar(pointer); got != text || !isText {
				t.Fatalf("%q: %s of %q became %q", raw, pointer, text, got)
			}
			if wasText {
				back, err := next.SetText(pointer, old)
				if err == nil && !reflect.DeepEqual(back.Value, e.Value) {
					t.Fatalf("%q: %s of %q and back is %q", raw, pointer, text, back.Raw)
				}
			}
		}
		if next, err := e.SetYAML(pointer, text); err == nil {
			if gone, err := next.Remove(pointer); err == nil {
				if gone.find(pointer).value != nil {
					t.Fatalf("%q: %s stays in %q", raw, pointer, gone.Raw)
				}
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
