package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

// newsHandlers send what changes, as it changes.
type newsHandlers struct{ news *records.News }

// follow sends what changed after the number that the client names, else what changes from now on.
func (h newsHandlers) follow(c echo.Context) error {
	q := queryOf(c, "after", "noun", "root", "roots")
	filter := api.NewsFilter{
		Nouns: parse(q, "noun", "a list of run, question, session and unit with commas between them", parseNouns),
		Root:  q.id("root"), Roots: q.flag("roots"),
	}
	after, err := afterOf(c, q)
	if err != nil {
		return err
	}
	if q.values.Get("after") == "" && c.Request().Header.Get("Last-Event-ID") == "" {
		after = api.FromNow
	}
	if _, err := h.news.Cursor(c.Request().Context()); err != nil { // a stream that has begun could only break off
		return err
	}
	return send(c, func(ctx context.Context) iter.Seq2[api.Event, error] {
		return asEvents(h.news.Follow(ctx, filter, after))
	}, nil)
}

func parseNouns(text string) (nouns []api.NewsNoun, ok bool) {
	for name := range strings.SplitSeq(text, ",") {
		noun := api.NewsNoun(name)
		if !slices.Contains(api.NewsNouns, noun) {
			return nil, false
		}
		nouns = append(nouns, noun)
	}
	return nouns, true
}

// asEvents has each of the news be an event named by its noun.
func asEvents(news iter.Seq2[api.News, error]) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for one, err := range news {
			event := api.Event{Seq: one.Seq, Type: api.EventType(one.Noun)}
			if err == nil {
				event.Data, err = json.Marshal(one)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}
