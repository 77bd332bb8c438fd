package client

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func TestNewsGoOnWhereTheConnectionWasLost(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("Last-Event-ID"))
		tell := func(seq int64, noun, id string) {
			_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: {\"seq\":%d,\"noun\":%q,\"id\":%q}\n\n", seq, noun, seq, noun, id)
		}
		switch len(asked) {
		case 1:
			tell(0, "cursor", "")
			tell(5, "run", "a")
		case 2:
			tell(5, "run", "a") // once more
			tell(6, "unit", "u")
		case 3:
			tell(2, "reset", "") // the server has an older store now
			tell(3, "run", "b")
		}
	})
	var got []api.News
	filter := api.NewsFilter{Nouns: []api.NewsNoun{api.NewsRun, api.NewsUnit}, Root: runID, Roots: true}
	for one, err := range c.News.Follow(t.Context(), filter, api.FromNow) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, one); one.ID == "b" {
			break
		}
	}
	want := []api.News{
		{Noun: api.NewsCursor},
		{Seq: 5, Noun: api.NewsRun, ID: "a"},
		{Seq: 6, Noun: api.NewsUnit, ID: "u"},
		{Seq: 2, Noun: api.NewsReset},
		{Seq: 3, Noun: api.NewsRun, ID: "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const address = "/v1/events?noun=run%2Cunit&root=" + runID + "&roots=true "
	if diff := cmp.Diff([]string{address, address + "5", address + "6"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestNewsThatAreStrangeEndIt(t *testing.T) {
	for _, body := range []string{"id: 0\nevent: run\ndata: {}\n\n", "id: 1\nevent: run\ndata: []\n\n", "id: -1\nevent: cursor\ndata: {}\n\n"} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) })
		var last error
		for _, err := range c.News.Follow(t.Context(), api.NewsFilter{}, 0) {
			last = err
		}
		if !fault.Is(last, fault.Unavailable) && !fault.Is(last, fault.Internal) {
			t.Errorf("%q: %v", body, last)
		}
	}
}
