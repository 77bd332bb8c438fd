package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

var seeds = []string{
	`{}`, `{"a":[1,-2.5e+3,"x\u00e9\ud83d\ude00",true,false,null,{"b":{}}]}`, `{"a":1,"a":2}`, `[1]`, `{"a":1e400}`, "\xef\xbb\xbf{}",
	`{"a":"\ud800"}`, ` { "a" : 0.0 } x`, `{"a":NaN}`, strings.Repeat(`{"a":`, 70), `{"":{"":""}}`, "{\"a\":\"\xff\"}", `{"a":01}`, `"\\u"`, "", "1e-999", `{"a":1,"\u0061":2}`,
}

func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	fuzzbound.Run(f, func(t *testing.T, data []byte) {
		got, err := Decode(data)
		checked := Check(data, Rules{})
		if (err == nil) != (checked == nil) || err != nil && err.Error() != checked.Error() {
			t.Fatalf("Decode says %v, Check %v", err, checked)
		}
		if loose := Check(data, Rules{Ambiguous: true, Unbounded: true}); loose != nil && err == nil {
			t.Fatalf("looser rules refuse it: %v", loose)
		} else if loose == nil && !json.Valid(data) {
			t.Fatal("loose rules take what encoding/json refuses")
		}
		if err != nil {
			within(t, err, len(data))
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || dec.More() {
			t.Fatalf("Decode took what encoding/json refuses: %v", err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("Decode read %v, encoding/json %v", got, want)
		}
	})
}

func within(t *testing.T, err error, size int) {
	t.Helper()
	var bad *Error
	if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > size || bad.Start < 0 || bad.Start > bad.Offset || bad.Line < 1 || bad.Column < 1 || bad.Message() == "" {
		t.Fatalf("a refusal is %#v", err)
	}
}

func FuzzMembers(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "a", "b")
	}
	fuzzbound.Run(f, func(t *testing.T, data []byte, first, second string) {
		for range Members(data) { // whatever it is, it comes to an end
		}
		outline(NewCursor(data))
		if Check(data, Rules{}) != nil || !isObject(data) {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		for name, value := range Members(data) {
			got[name] = value
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("Members gave %s, encoding/json %s", got, want)
		}
		path := []string{strings.ToValidUTF8(first, ""), strings.ToValidUTF8(second, "")}
		changed, err := Set(data, path, []byte("7"))
		if err != nil {
			return
		}
		v, err := Decode(changed)
		if found, _ := Lookup(v, path); err == nil && found != json.Number("7") {
			t.Fatalf("Set gave %s", changed)
		}
	})
}
