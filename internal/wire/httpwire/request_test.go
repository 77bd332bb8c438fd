package httpwire

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestAnIdempotencyKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		want   string
		bad    bool
	}{
		{name: "none"},
		{name: "one", values: []string{"k-1"}, want: "k-1"},
		{name: "the longest", values: []string{strings.Repeat("~", 255)}, want: strings.Repeat("~", 255)},
		{name: "one too long", values: []string{strings.Repeat("k", 256)}, bad: true},
		{name: "an empty one", values: []string{""}, bad: true},
		{name: "with a space", values: []string{"a b"}, bad: true},
		{name: "with a control character", values: []string{"a\x7f"}, bad: true},
		{name: "not ASCII", values: []string{"ä"}, bad: true},
		{name: "two", values: []string{"a", "a"}, bad: true},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Idempotency-Key"] = c.values
		got, err := IdempotencyKey(r)
		if got != c.want || c.bad != fault.Is(err, fault.BadRequest) || !c.bad && err != nil {
			t.Errorf("%s: %q %v", c.name, got, err)
		}
	}
}

func TestTimeoutsAndWaits(t *testing.T) {
	for _, c := range []struct {
		text             string
		timeout, wait    time.Duration
		isTimeout, waits bool
	}{
		{"", 0, 0, true, false},
		{"30s", 30 * time.Second, 30 * time.Second, true, true},
		{"0s", 0, 0, false, true},
		{"5m", 5 * time.Minute, 5 * time.Minute, true, true},
		{"5m1ns", 5*time.Minute + 1, 0, true, false},
		{"-1s", 0, 0, false, false},
		{"30", 0, 0, false, false},
		{"soon", 0, 0, false, false},
	} {
		timeout, err := Timeout(c.text)
		if (err == nil) != c.isTimeout || timeout != c.timeout || err != nil && !fault.Is(err, fault.BadRequest) {
			t.Errorf("timeout %q: %s %v", c.text, timeout, err)
		}
		wait, ok := Wait(c.text)
		if ok != c.waits || ok && wait != c.wait {
			t.Errorf("wait %q: %s %v", c.text, wait, ok)
		}
	}
}

func TestARunID(t *testing.T) {
	for text, want := range map[string]bool{
		"0198c0de-0000-7000-8000-0123456789ab":   true,
		"0198C0DE-0000-7000-8000-0123456789AB":   false,
		"0198c0de00007000800000123456789ab":      false,
		"{0198c0de-0000-7000-8000-0123456789ab}": false,
		"0198c0de-0000-7000-8000-0123456789ab\n": false,
		"../../../../../../../../../../../../":   false,
		"":                                       false,
	} {
		if IsRunID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestFieldsAreReadByTheirExactNames(t *testing.T) {
	f, err := FieldsOf([]byte(`{"unit":"a","Unit":"b","n":null,"list":[1]}`))
	must(t, err)
	unit, n, list := "", 7, ""
	must(t, errors.Join(Take(f, "unit", &unit), Take(f, "n", &n), Take(f, "missing", &n)))
	if unit != "a" || n != 7 {
		t.Errorf("%q %d", unit, n)
	}
	if err := Take(f, "list", &list); !fault.Is(err, fault.BadRequest) || fault.Public(err).Msg != `the field "list" has a value of the wrong type` {
		t.Errorf("%v", err)
	}
	if err := f.Only("unit", "n", "list"); !fault.Is(err, fault.BadRequest) || fault.Public(err).Hint != `its fields are ["unit" "n" "list"]` {
		t.Errorf("%v", err)
	}
	must(t, f.Only("unit", "Unit", "n", "list"))
	if _, err := FieldsOf([]byte(`[1]`)); !fault.Is(err, fault.Internal) {
		t.Errorf("%v", err)
	}
}

func TestTheTwoKindsOfAClientsMistakeAreTurnedIntoOne(t *testing.T) {
	mistake := fault.New(fault.Input, "wrong").WithHint("mend it")
	turned := AsKind(fault.BadRequest, mistake)
	if !fault.Is(turned, fault.BadRequest) || fault.Public(turned).Hint != "mend it" || mistake.Kind != fault.Input {
		t.Errorf("%v, %v", turned, mistake)
	}
	for _, other := range []error{nil, errors.New("x"), fault.New(fault.TooLarge, "x")} {
		if got := AsKind(fault.BadRequest, other); !errors.Is(got, other) || fault.Is(got, fault.BadRequest) {
			t.Errorf("%v: %v", other, got)
		}
	}
}

func TestOnlyJSONIsTakenForJSON(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json": true, "Application/JSON; charset=utf-8": true, "": false, "text/plain": false,
		"application/problem+json": false, "application/json; =": false,
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", value)
		if err := RequireJSON(r); (err == nil) != want || err != nil && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestTraceParent(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	cases := map[string]string{
		good:               good,
		"":                 "",
		"ff" + good[2:]:    "",
		good + "x":         "",
		"<script>":         "",
		good[:52] + "\n00": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
	}
	for given, want := range cases {
		r := httptest.NewRequest("POST", "/v1/runs", nil)
		r.Header["Traceparent"] = []string{given}
		if got := TraceParent(r); got != want {
			t.Errorf("TraceParent(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestWhichHostsAreThisMachine(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "10.0.0.1": false, "localhost.evil": false, "": false} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
