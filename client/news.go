package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

// News tells what changes on the server.
type News struct{ conn *conn }

// Follow follows what changes after the change with the number after, of each thing at least its last change, in order
// and none twice; see api.News for the words of the server that are of no thing. It doesn't end by itself. With
// api.FromNow it begins with a cursor: whoever reads lists then misses nothing. A lost connection is made again, as
// with Runs.Events.
func (c News) Follow(ctx context.Context, filter api.NewsFilter, after int64) iter.Seq2[api.News, error] {
	return func(yield func(api.News, error) bool) {
		to := to(http.MethodGet, "events")
		to.query = newsQuery(filter)
		var strange error
		f := follower{conn: c.conn, to: to, after: after, sealed: true, retries: c.conn.newRetrier()}
		f.emit = func(e api.Event) bool {
			var one api.News
			if err := json.Unmarshal(e.Data, &one); err != nil {
				strange = c.conn.strange(err)
				return false
			}
			return yield(one, nil)
		}
		if err := f.follow(ctx); err != nil {
			strange = err
		}
		if strange != nil {
			yield(api.News{}, strange)
		}
	}
}

func newsQuery(f api.NewsFilter) url.Values {
	query := url.Values{}
	if len(f.Nouns) > 0 {
		nouns := make([]string, len(f.Nouns))
		for i, noun := range f.Nouns {
			nouns[i] = string(noun)
		}
		query.Set("noun", strings.Join(nouns, ","))
	}
	if f.Root != "" {
		query.Set("root", f.Root)
	}
	if f.Roots {
		query.Set("roots", "true")
	}
	return query
}

// ofNoThing reports whether an event is the server's word on where the news are.
func ofNoThing(kind api.EventType) bool {
	return kind == api.EventType(api.NewsCursor) || kind == api.EventType(api.NewsReset)
}
