package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

func TestNumbersAreShownAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{span(840 * time.Millisecond), "840 ms"},
		{span(1630 * time.Millisecond), "1.63 s"},
		{span(41800 * time.Millisecond), "41.8 s"},
		{span(144 * time.Second), "2 min 24 s"},
		{span(2 * time.Hour), "2 h"},
		{span(49 * time.Hour), "2 d 1 h"},
		{span(-time.Second), "0 ms"},
		{num(0), "0"},
		{num(1234567), "1,234,567"},
		{num(-1000), "-1,000"},
		{count(1000, true), "1,000+"},
		{size(412), "412 B"},
		{size(1536), "1.5 KiB"},
		{size(3 << 40), "3.0 TiB"},
		{cost(nil, 4), "—"},
		{cost(&api.ModelTotal{}, 4), "—"},
		{cost(&api.ModelTotal{Charged: 5}, 4), "not priced"},
		{cost(&api.ModelTotal{Charged: 5, Cost: 1_060_000}, 5), "0.00106"},
		{cost(&api.ModelTotal{Charged: 5, Cost: 3}, 4), "<0.0001"},
		{short("01a21f29-4e21-727d-8f2c-ba8492701178"), "…92701178"},
		{short("abc"), "abc"},
	} {
		if c.got != c.want {
			t.Errorf("%q, not %q", c.got, c.want)
		}
	}
}

func TestWhereSomebodyIsLedBackIsBelowThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"runs?state=failed", "runs?state=failed"},
		{"questions/01a2", "questions/01a2"},
		{"", "runs"},
		{"//evil.example", "runs"},
		{"/ui/runs", "runs"},
		{"https://evil.example", "runs"},
		{`\\evil.example`, "runs"},
		{"javascript:alert(1)", "runs"},
		{"../v1/runs", "runs"},
		{"%2e%2e/v1", "runs"},
		{"a\r\nSet-Cookie: x=y", "runs"},
	} {
		if got := local(c.text); got != c.want {
			t.Errorf("%q leads to %q, not %q", c.text, got, c.want)
		}
	}
}

func TestAViewThatIsNoneIsTheUsualOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "%", "theme=blue&zone=Nowhere%2FAtAll", "zone=..%2F..%2Fetc%2Fpasswd", "zone=Local"} {
		r := httptest.NewRequest(http.MethodGet, "/ui/runs", nil)
		r.AddCookie(&http.Cookie{Name: viewCookie, Value: text})
		if v := viewOf(r); v.Theme != "" || v.Zone != "UTC" || v.Absolute {
			t.Errorf("%q is %+v", text, v)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/ui/runs", nil)
	r.AddCookie(&http.Cookie{Name: viewCookie, Value: view{Theme: "dark", Absolute: true, Zone: "Europe/Berlin"}.encode()})
	if v := viewOf(r); v.Theme != "dark" || v.Zone != "Europe/Berlin" || !v.Absolute {
		t.Errorf("what was kept is %+v", v)
	}
}
