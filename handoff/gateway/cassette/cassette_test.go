package cassette

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func request(body string) Request { return Request{"chat", "m", false, []byte(body)} }

func key(t *testing.T, r Request) string {
	t.Helper()
	k, err := KeyOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestEqualRequestsHaveOneKey(t *testing.T) {
	same := []string{
		`{"model":"m","messages":[{"a":1.0,"b":"é"}]}`,
		` {"messages" : [ {"b":"\u00e9","a":1.0} ], "model":"x", "stream":false, "stream_options":{} } `,
	}
	other := []string{
		`{"messages":[{"a":1,"b":"é"}]}`, `{"messages":[{"a":1.0,"b":"e"}]}`, `{"messages":[{"a":1.0,"b":"é"},1]}`, `{"messages":[{"a":"1.0","b":"é"}]}`,
	}
	if key(t, request(same[0])) != key(t, request(same[1])) {
		t.Error("the same has another key")
	}
	for _, body := range other {
		if key(t, request(body)) == key(t, request(same[0])) {
			t.Errorf("%s has the same key", body)
		}
	}
	if key(t, request(`{"n":9007199254740992}`)) == key(t, request(`{"n":9007199254740993}`)) {
		t.Error("2^53 and 2^53+1 are one")
	}
	r := request(same[0])
	for _, change := range []func(){func() { r.Dialect = "messages" }, func() { r.Model = "n" }, func() { r.Stream = true }} {
		before := key(t, r)
		if change(); key(t, r) == before {
			t.Error("another question has the same key")
		}
	}
	if _, err := KeyOf(request(`{`)); err == nil {
		t.Error("it isn't JSON")
	}
}

func TestAnswersComeBackAsTheyWere(t *testing.T) {
	var tape bytes.Buffer
	rec := NewRecorder(&tape)
	image := `{"x":"data:image/png;base64,` + strings.Repeat("A", 5000) + `"}`
	first := Answer{200, "text/event-stream", []Chunk{Chunk("data: \xff\n\n"), Chunk("<é>\n\n"), {}}}
	second := Answer{429, "application/json", []Chunk{Chunk("{}")}}
	for _, each := range []struct {
		body string
		a    Answer
	}{{image, first}, {`{"y":1}`, second}, {image, second}} {
		if err := rec.Keep(request(each.body), each.a); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(tape.String(), "AAAA") || strings.Count(tape.String(), "\n") != 3 {
		t.Errorf("%s", tape.String())
	}
	p, err := Read("tape", &tape)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Answer{first, second} {
		got, err := p.Next(request(image))
		if err != nil || !bytes.Equal(slices.Concat(got.Chunks...), slices.Concat(want.Chunks...)) || got.Status != want.Status || len(got.Chunks) != len(want.Chunks) {
			t.Errorf("%+v %v", got, err)
		}
	}
	var miss *Miss
	if _, err := p.Next(request(image)); !errors.As(err, &miss) || miss.Spent != 2 {
		t.Error(err)
	}
}

func TestAMissNamesTheNearestRequestAndWhereItDiffers(t *testing.T) {
	tape := `{"dialect":"chat","model":"m","request":{"messages":[{"content":"a","role":"user"}],"t":1},"status":200,"type":"application/json","chunks":["{}"]}

{"dialect":"chat","model":"m","request":{"messages":[{"content":"b","role":"user"},{"content":"c"}],"t":1},"status":200,"type":"application/json","chunks":["{}"]}
`
	p, err := Read("tape", strings.NewReader(tape))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r    Request
		want Miss
	}{
		{request(`{"messages":[{"content":"x","role":"user"}],"t":1}`), Miss{Nearest: 1, Pointer: "/messages/0/content"}},
		{request(`{"messages":[{"content":"b","role":"user"},{"content":"c"}],"t":1,"u":2}`), Miss{Nearest: 2, Pointer: "/u"}},
		{request(`{"messages":[{"content":"b","role":"user"},{"content":"c"},{}],"t":1}`), Miss{Nearest: 2, Pointer: "/messages/2"}},
		{request(`{"messages":[{"content":["a"],"role":"user"}],"t":1}`), Miss{Nearest: 1, Pointer: "/messages/0/content"}},
		{Request{"chat", "m", true, []byte(`{"messages":[{"content":"a","role":"user"}],"t":1}`)}, Miss{Nearest: 1, Pointer: "/stream"}},
		{Request{"chat", "n", false, []byte(`{}`)}, Miss{}},
	} {
		_, err := p.Next(c.r)
		var miss *Miss
		if !errors.As(err, &miss) || !cmp.Equal(*miss, c.want) || miss.Error() == "" {
			t.Errorf("%s: %+v", c.r.Body, err)
		}
	}
}

func TestWhatIsNoCassette(t *testing.T) {
	good := `{"dialect":"chat","model":"m","request":{},"status":200,"type":"x","chunks":[]}`
	for name, line := range map[string]string{
		"no JSON": "{", "no object": "[]", "another field": `{"dialect":"chat","x":1}`, "no status": strings.Replace(good, "200", "20", 1),
		"a chunk of another type": strings.Replace(good, "[]", "[1]", 1), "no request": strings.Replace(good, `"request":{},`, "", 1),
		"bad base64": strings.Replace(good, "[]", `[{"base64":"!"}]`, 1),
	} {
		_, err := Read("tape", strings.NewReader(good+"\n"+line+"\n"))
		if !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), "tape:2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCassette(f *testing.F) {
	f.Add([]byte(`{"dialect":"chat","model":"m","request":{"n":9007199254740993},"status":200,"type":"x","chunks":["a",{"base64":"/w=="}]}`), []byte(`{"n":1}`))
	fuzzbound.Run(f, func(t *testing.T, tape, body []byte) {
		p, err := Read("f", bytes.NewReader(tape))
		if err != nil {
			return
		}
		for _, take := range p.takes {
			a, err := p.Next(take.request)
			if err != nil {
				t.Fatalf("what was recorded isn't found: %v", err)
			}
			var again bytes.Buffer
			if err := NewRecorder(&again).Keep(take.request, a); err != nil {
				t.Fatal(err)
			}
			q, err := Read("g", &again)
			if err != nil {
				t.Fatalf("what was written can't be read: %v", err)
			}
			if b, err := q.Next(take.request); err != nil || !bytes.Equal(slices.Concat(a.Chunks...), slices.Concat(b.Chunks...)) {
				t.Fatalf("%v: %q became %q", err, slices.Concat(a.Chunks...), slices.Concat(b.Chunks...))
			}
		}
		_, _ = p.Next(Request{"chat", "m", false, body}) // whatever it is, it comes to an end
	})
}
