package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
)

// newsStream is an open stream of news.
type newsStream struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (s *server) news(t *testing.T, query string, headers ...string) *newsStream {
	t.Helper()
	resp, err := client.Do(s.request("GET", "/v1/events"+query, "", headers...))
	must(t, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &newsStream{t, resp.Body, bufio.NewScanner(resp.Body)}
}

// next reads an event, which keeps the document.
func (n *newsStream) next() (one api.News) {
	n.t.Helper()
	var e struct {
		ID    *int64   `json:"id"`
		Event string   `json:"event"`
		Data  api.News `json:"data"`
	}
	var document strings.Builder
	for n.lines.Scan() && n.lines.Text() != "" {
		name, value, _ := strings.Cut(n.lines.Text(), ": ")
		if name == "event" {
			value = fmt.Sprintf("%q", value)
		}
		_, _ = fmt.Fprintf(&document, `,"%s":%s`, name, value)
	}
	raw := "{" + strings.TrimPrefix(document.String(), ",") + "}"
	unmarshal(n.t, []byte(raw), &e)
	var whole any
	unmarshal(n.t, []byte(raw), &whole)
	if found := violations(map[string]any{"$ref": "#/components/schemas/News"}, whole); len(found) > 0 {
		n.t.Errorf("%s: %q", raw, found)
	}
	if e.ID == nil || *e.ID != e.Data.Seq || e.Event != string(e.Data.Noun) {
		n.t.Fatalf("an event is %s", raw)
	}
	return e.Data
}

func TestNewsAreStreamedAndGoOnAfterALostConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	first := s.news(t, "?noun=run&roots=true")
	cursor := first.next()
	if cursor.Noun != api.NewsCursor {
		t.Fatalf("it begins with %+v", cursor)
	}
	before := s.run(`{}`)
	at := first.next()
	for ; at.State != string(api.Completed); at = first.next() {
		if at.Seq == cursor.Seq || at.ID != before.ID {
			t.Errorf("%+v after %d", at, cursor.Seq)
		}
	}
	must(t, first.body.Close())
	missed := s.run(`{}`)
	s.do("POST", "/v1/units/actor/disable", "").wants(t, 200)
	want := []api.News{
		{Noun: api.NewsRun, ID: missed.ID, Root: missed.ID, Unit: "actor", State: "completed", Outcome: api.Success},
		{Noun: api.NewsUnit, ID: "actor"},
	}
	for _, c := range []struct{ query, header string }{
		{fmt.Sprintf("?after=%d", at.Seq), "X: y"}, {"", fmt.Sprintf("Last-Event-ID: %d", at.Seq)}, {"?after=0", fmt.Sprintf("Last-Event-ID: %d", at.Seq)},
	} {
		again := s.news(t, c.query, c.header)
		got := []api.News{again.next()}
		for got[0].State != string(api.Completed) { // only the last change of a thing is promised
			got[0] = again.next()
		}
		got = append(got, again.next())
		if now, err := s.svc.News.Cursor(trusted.Context(t)); got[1].Seq != now || got[0].Seq == at.Seq || err != nil {
			t.Errorf("after %d there are %d and %d, which should be %d: %v", at.Seq, got[0].Seq, got[1].Seq, now, err)
		}
		got[0].Seq, got[1].Seq = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", c, diff)
		}
	}
	if got := s.news(t, "?after=1000000").next(); got.Noun != api.NewsReset || got.Seq == at.Seq {
		t.Errorf("after what there isn't comes %+v", got)
	}
	if got := s.news(t, "?after=0&noun=unit").next(); got.ID != "actor" {
		t.Errorf("the first unit is %+v", got)
	}
	for _, bad := range []string{"?noun=runs", "?noun=run,", "?root=x", "?roots=1", "?after=-1", "?stray=1"} {
		s.do("GET", "/v1/events"+bad, "").wants(t, 400)
	}
	s.do("GET", "/v1/events", "", "Last-Event-ID: x").wants(t, 400)
	s.do("GET", "/v1/events", "", "Authorization: -").wants(t, 401)
}

func TestNewsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	stream := s.news(t, "")
	stream.next()
	s.stop()
	if _, err := io.ReadAll(stream.body); err != nil {
		t.Errorf("the news broke off: %v", err)
	}
}
