package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func TestARequestIsSaidOrRefusedWithItsField(t *testing.T) {
	t.Parallel()
	count := 0
	for _, p := range pairs() {
		t.Run(p.String(), func(t *testing.T) {
			for _, s := range shapes(p.asker) {
				count++
				checkShape(t, p, s)
			}
		})
	}
	if t.Logf("%d shapes", count); count < 300 {
		t.Errorf("there are %d shapes alone", count)
	}
}

func checkShape(t *testing.T, p pair, s shape) {
	t.Helper()
	got, err := New(p.asker, p.provider, []byte(s.body))
	if want := s.unsaid[p.provider]; want != "" || err != nil {
		var unsaid *Error
		if !errors.As(err, &unsaid) || unsaid.Path != want || unsaid.Why == "" {
			t.Errorf("%s: %s\n%v, and not at %q", s.name, s.body, err, want)
		}
		return
	}
	if err := strictjson.Check(got.Body, strictjson.Rules{}); err != nil {
		t.Fatalf("%s: %s\n%s: %v", s.name, s.body, got.Body, err)
	}
	// What comes back is what was said; in messages, turns of one role that follow each other are one.
	own, err := New(p.asker, p.asker, []byte(s.body))
	if p.provider == catalog.Messages && err == nil {
		own, err = roundTrip(pair{p.asker, catalog.Messages}, own.Body)
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, s.body, err)
	}
	back, err := New(p.provider, p.asker, got.Body)
	if err != nil {
		t.Errorf("%s: %s\n%s: the way back: %v", s.name, s.body, got.Body, err)
		return
	}
	if plainly(own.Body) != plainly(back.Body) {
		t.Errorf("%s: %s\n%s\nbecame %s\nand not %s", s.name, s.body, got.Body, back.Body, own.Body)
	}
}

// roundTrip says a request in the other dialect, and what came out in its own again.
func roundTrip(p pair, body []byte) (*Translation, error) {
	there, err := New(p.asker, p.provider, body)
	if err != nil {
		return nil, err
	}
	return New(p.provider, p.asker, there.Body)
}

// plainly leaves out what a dialect adds, because others mean it without a word.
func plainly(body []byte) string {
	text := string(body)
	for _, added := range []string{`,"strict":false`, `,"strict":true`, `,"title":"answer"`, `"is_error":false,`, `"is_error":true,`} {
		text = strings.ReplaceAll(text, added, "")
	}
	return strings.ReplaceAll(text, `"content":"Error: `, `"content":"`) // a mark that became words
}

// leaf is a value in a document that holds no other.
type leaf struct {
	path  []string
	value any
}

func leaves(v any, path ...string) (all []leaf) {
	path = slices.Clip(path)
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			all = append(all, leaves(inner, append(path, name)...)...)
		}
	case []any:
		for i, inner := range v {
			all = append(all, leaves(inner, append(path, strconv.Itoa(i))...)...)
		}
	default:
		return []leaf{{path, v}}
	}
	return all
}

// changed is another value of a leaf's kind.
func changed(v any) any {
	switch v := v.(type) {
	case string:
		switch {
		case strings.HasPrefix(v, "{"):
			return `{"other":[1]}`
		case strings.HasPrefix(v, "data:image/png"):
			return "data:image/gif;base64,b3RoZXI="
		}
		return v + "-other"
	case json.Number:
		n, _ := v.Float64()
		return json.Number(fmt.Sprint(n + 0.0625))
	case bool:
		return !v
	}
	return "other"
}

// left are the leaves that are legally left out, by the end of their way: nothing stands there.
func left(d catalog.Dialect, path []string) bool {
	last := path[len(path)-1]
	return d == catalog.Messages && slices.Contains(path, "cache_control") || d == catalog.Responses && (len(path) == 1 && last == "store" || len(path) == 3 && path[0] == "input" && oneOf(last, "id", "status"))
}

// No leaf of a request can change without that what goes out changes, or is refused at that leaf.
func TestNothingIsDropped(t *testing.T) {
	t.Parallel()
	count := 0
	for _, p := range pairs() {
		for _, s := range shapes(p.asker) {
			if strings.Contains(s.name, " and ") && len(s.name)%4 > 0 {
				continue // its pieces are walked alone
			}
			first, err := New(p.asker, p.provider, []byte(s.body))
			if err != nil {
				continue
			}
			for _, l := range leaves(decoded(t, s.body)) {
				count++
				checkLeaf(t, p, s, l, first)
			}
		}
	}
	t.Logf("%d leaves", count)
}

func decoded(t testing.TB, body string) any {
	t.Helper()
	v, err := strictjson.Decode([]byte(body))
	if err != nil {
		t.Fatal(err, body)
	}
	return v
}

func checkLeaf(t *testing.T, p pair, s shape, l leaf, first *Translation) {
	t.Helper()
	root := decoded(t, s.body)
	at, last := root, l.path[len(l.path)-1]
	for _, name := range l.path[:len(l.path)-1] {
		at, _ = strictjson.Lookup(at, []string{name})
	}
	if list, ok := at.([]any); ok {
		i, _ := strconv.Atoi(last)
		list[i] = changed(l.value)
	} else {
		at.(map[string]any)[last] = changed(l.value)
	}
	body := encode(root)
	pointer := strictjson.Pointer(l.path...)
	got, err := New(p.asker, p.provider, body)
	var unsaid *Error
	switch {
	case errors.As(err, &unsaid):
		if !strings.HasPrefix(pointer, unsaid.Path) && !strings.HasPrefix(unsaid.Path, pointer[:strings.LastIndex(pointer, "/")]) {
			t.Errorf("%s, %s: %s is refused at %s", p, s.name, pointer, unsaid.Path)
		}
	case string(got.Body) == string(first.Body) && got.usage == first.usage && !left(p.asker, l.path) && !idleChoice(s, l):
		t.Errorf("%s, %s: %s of %s is dropped: %s", p, s.name, pointer, body, got.Body)
	}
}

// idleChoice: where no tool may be called, none is called at once.
func idleChoice(s shape, l leaf) bool {
	return l.path[0] == "parallel_tool_calls" && strings.Contains(s.body, `"tool_choice":"none"`)
}

// A field that nobody knows is refused wherever it stands, but in what is somebody else's: schemas and arguments.
func TestUnknownFieldsAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for _, p := range pairs() {
		for _, s := range shapes(p.asker) {
			if _, err := New(p.asker, p.provider, []byte(s.body)); err != nil || strings.Contains(s.name, " and ") {
				continue
			}
			for i, c := range s.body {
				if c != '{' || strings.HasSuffix(s.body[:i], `"`) || isFree(s.body[:i]) {
					continue
				}
				body := s.body[:i+1] + `"zz":1,` + s.body[i+1:]
				body = strings.ReplaceAll(body, ",}", "}")
				_, err := New(p.asker, p.provider, []byte(body))
				var unsaid *Error
				if !errors.As(err, &unsaid) {
					t.Errorf("%s, %s: zz is dropped in %s", p, s.name, body)
				}
			}
		}
	}
}

// isFree reports whether an object that begins after a text, or one around it, belongs to somebody else.
func isFree(before string) bool {
	for _, name := range []string{`"cache_control":`, `"parameters":`, `"input_schema":`, `"schema":`, `"input":{`, `"metadata":`, `"logit_bias":`} {
		at := strings.LastIndex(before, name)
		if at < 0 {
			continue
		}
		at += len(strings.TrimSuffix(name, "{"))
		inside := before[at:]
		if strings.Count(inside, "{") >= strings.Count(inside, "}") && strings.Count(inside, "{") > 0 && strings.Count(inside, "{") > strings.Count(inside, "}") || inside == "" {
			return true
		}
	}
	return strings.HasSuffix(before, `"input":`)
}

func TestWhatAnAnswerStillHasToSayIsRefused(t *testing.T) {
	t.Parallel()
	for p, body := range map[pair]string{
		{catalog.Messages, catalog.Chat}:      `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"It is"}]}`,
		{catalog.Chat, catalog.Messages}:      `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"It is"}]}`,
		{catalog.Responses, catalog.Messages}: `{"model":"m","input":[{"role":"assistant","content":"It is"}]}`,
	} {
		_, err := New(p.asker, p.provider, []byte(body))
		if err == nil || !strings.Contains(err.Error(), "messages") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestARequestInTheOtherWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pair
		body, want string
	}{
		"results stand together": {
			pair{catalog.Chat, catalog.Messages},
			`{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},` + chatCalled(2) + "," + chatResult(1, `"a"`) + "," + chatResult(2, `"b"`) + `,{"role":"user","content":"V"}]}`,
			`{"messages":[{"content":"U","role":"user"},{"content":[{"id":"call_1","input":{"page":1},"name":"ocr","type":"tool_use"},{"id":"call_2","input":{"page":1},"name":"ocr","type":"tool_use"}],"role":"assistant"},` +
				`{"content":[{"content":"a","tool_use_id":"call_1","type":"tool_result"},{"content":"b","tool_use_id":"call_2","type":"tool_result"},{"text":"V","type":"text"}],"role":"user"}],"model":"m","system":"S"}`,
		},
		"calls belong to what was said": {
			pair{catalog.Responses, catalog.Chat},
			`{"model":"m","input":[{"role":"user","content":"U"},{"role":"assistant","content":"A"},` + responsesCalled(1) + "," + responsesCalled(2) + "," + responsesResult(1, `"a"`) + `]}`,
			`{"messages":[{"content":"U","role":"user"},{"content":"A","role":"assistant","tool_calls":[{"function":{"arguments":"{\"page\":1}","name":"ocr"},"id":"call_1","type":"function"},` +
				`{"function":{"arguments":"{\"page\":1}","name":"ocr"},"id":"call_2","type":"function"}]},{"content":"a","role":"tool","tool_call_id":"call_1"}],"model":"m"}`,
		},
		"the order of a schema": {
			pair{catalog.Messages, catalog.Responses},
			`{"model":"m","max_tokens":7,"messages":[{"role":"user","content":"U"}],"tools":[{"name":"f","input_schema":{"z":1.0,"a":2}}]}`,
			`{"input":[{"content":"U","role":"user","type":"message"}],"max_output_tokens":7,"model":"m","tools":[{"name":"f","parameters":{"z":1.0,"a":2},"strict":false,"type":"function"}]}`,
		},
		"the name of a schema": {
			pair{catalog.Chat, catalog.Messages},
			`{"model":"m","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"city","schema":{"type":"object"}}}}`,
			`{"messages":[],"model":"m","output_config":{"format":{"schema":{"type":"object","title":"city"},"type":"json_schema"}}}`,
		},
		"an image": {
			pair{catalog.Messages, catalog.Chat},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}]}`,
			`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,aGk="},"type":"image_url"}],"role":"user"}],"model":"m"}`,
		},
		"one tool at a time": {
			pair{catalog.Messages, catalog.Chat},
			`{"model":"m","messages":[],"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`,
			`{"messages":[],"model":"m","parallel_tool_calls":false,"tool_choice":"required"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(c.asker, c.provider, []byte(c.body))
			if err != nil || string(got.Body) != c.want {
				t.Errorf("%v\n%s, not\n%s", err, got.Body, c.want)
			}
		})
	}
}
