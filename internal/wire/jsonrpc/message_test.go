package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestIDsAndTokensKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"null", "0", "-0", "1", "1.0", "1e2", "10e-1", "9007199254740993", "-9007199254740993", `"\u0061"`, `"a\/b"`,
		`"\ud800"`, `"aod-id:1"`, "123456789012345678901234567890", `""`, "\"\u2028\"",
	} {
		text := `{"jsonrpc": "2.0", "params":{"_meta":{"progressToken":` + id + `}}, "id" : ` + id + ` ,"method":"ping"}`
		m, err := Read([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		var seen struct {
			ID     string
			Params struct {
				Meta map[string]string `json:"_meta"`
			}
		}
		if err := json.Unmarshal(m.Carried(), &seen); err != nil {
			t.Errorf("the SDK gets %s: %v", m.Carried(), err)
		}
		quoted, _ := json.Marshal(seen.ID)
		answer, answers := Restored([]byte(`{"jsonrpc":"2.0","id":` + string(quoted) + `,"result":{}}`))
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`; string(answer) != want || string(answers) != id {
			t.Errorf("the client gets %s for %s", answer, id)
		}
		token, _ := json.Marshal(seen.Params.Meta["progressToken"])
		told, answers := Restored([]byte(`{"method":"notifications/progress","params":{"progressToken":` + string(token) + `}}`))
		if want := `{"method":"notifications/progress","params":{"progressToken":` + id + `}}`; answers != nil ||
			id != "null" && string(told) != want {
			t.Errorf("the client hears %s of %s", told, id)
		}
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	for text, id := range map[string]string{
		`"x"`: "", `5`: "", `[]`: "", `{}`: "", `{"id":4,"method":"ping"}`: "4",
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`:                                                               "",
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                                                              "",
		`{"jsonrpc":"2.0","id":2.5,"method":"ping"}`:                                                               "",
		`{"jsonrpc":"2.0","id":25e-1,"method":"ping"}`:                                                             "",
		`{"jsonrpc":"2.0","id":1e99999999999999999999,"method":"ping"}`:                                            "",
		`{"jsonrpc":"2.0","id":4,"method":5}`:                                                                      "4",
		`{"jsonrpc":"2.0","method":null}`:                                                                          "",
		`{"jsonrpc":2.0,"id":4,"method":"ping"}`:                                                                   "4",
		`{"jsonrpc":"2.0","id":4}`:                                                                                 "4",
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                                                          "",
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                                                                  "null",
		`{"jsonrpc":"2.0","id":1,"error":5}`:                                                                       "1",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`:                                              "1",
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":2.5}}}`:                           "1",
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":[]}}}`:                            "1",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`:                           "",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}":                                                       "",
		`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`: "",
	} {
		m, err := Read([]byte(text))
		if err == nil || string(m.ID) != id {
			t.Errorf("%s: id %s, %v", text, m.ID, err)
		}
	}
}

func TestIDsThatSayTheSameHaveOneKey(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{{"1", "1.0", "10e-1", "0.1e1"}, {`"a"`, `"\u0061"`}, {"0", "-0", "0.0"}, {"1e30", "10e29"}} {
		for _, id := range same {
			if Key([]byte(id)) != Key([]byte(same[0])) {
				t.Errorf("%s has the key %s, and %s another", id, Key([]byte(id)), same[0])
			}
		}
	}
	if Key([]byte("1")) == Key([]byte(`"1"`)) {
		t.Error("a text is not a number")
	}
	m, err := Read([]byte(`{"jsonrpc":"2.0","id":1.0,"result":{}}`))
	if err != nil || string(m.Carried()) != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("an answer to 1.0 is %s, %v", m.Carried(), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1.0,"method":"ping","params":{"_meta":{"progressToken":"\u0061"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1e2,"error":{"code":1,"message":"x"}}`))
	f.Add([]byte(`[{"id":2.5}]`))
	fuzzbound.Run(f, func(t *testing.T, text []byte) {
		m, err := Read(text)
		if err != nil {
			if !json.Valid(Refusal(m.ID, CodeInvalidRequest, err.Error())) {
				t.Errorf("the refusal of %q isn't JSON", text)
			}
			return
		}
		if !json.Valid(m.Carried()) {
			t.Errorf("%q became %q", text, m.Carried())
		}
		if m.ID == nil || m.Method == "" {
			return
		}
		restored, answers := Restored([]byte(`{"jsonrpc":"2.0","id":` + string(Carry(m.ID)) + `,"result":{}}`))
		if string(answers) != string(m.ID) || !json.Valid(restored) {
			t.Errorf("%q comes back as %q", m.ID, answers)
		}
	})
}

func TestAnswersAreToldFromRequests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{}}`: true, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`: true,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`: false, `{"jsonrpc":"2.0","method":"x"}`: false,
	} {
		if m, err := Read([]byte(text)); err != nil || m.IsAnswer() != want || m.Size() != len(text) {
			t.Errorf("%s: %v, %v", text, m.IsAnswer(), err)
		}
	}
}

func TestParametersAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"a": {"b":1}}`: `{"b":1}`, `{"b":1}`: "", `[1]`: "", `{"a":1,"a":2}`: `{"a":1,"a":2}`,
	} {
		m, err := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + params + `}`))
		if err != nil || string(m.Param("a")) != want {
			t.Errorf("%s: %s, %v", params, m.Param("a"), err)
		}
	}
	if m, _ := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`)); m.Param("a") != nil {
		t.Error("a request without parameters has one")
	}
}
