package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

func TestWhatAProviderSaysOfItsAnswer(t *testing.T) {
	want := About{ID: "a-1", Model: "up", Reasons: []string{"end"}}
	for name, c := range map[string]struct {
		dialect catalog.Dialect
		plain   string
		events  []string
		want    About
	}{
		"chat": {catalog.Chat, `{"id":"a-1","model":"up","choices":[{"finish_reason":"end"}]}`, []string{
			`{"id":"a-1","model":"up","choices":[{"finish_reason":null}]}`, `{"id":"a-2","choices":[{"finish_reason": "end"}]}`, `[DONE]`,
		}, want},
		"responses": {catalog.Responses, `{"id":"a-1","model":"up","status":"end"}`, []string{
			`{"type":"response.created","response":{"id":"a-0","status":"in_progress"}}`, `{"type":"response.completed","response":{"id":"a-1","model":"up","status":"end"}}`,
		}, want},
		"messages": {catalog.Messages, `{"id":"a-1","model":"up","stop_reason":"end"}`, []string{
			`{"type":"message_start","message":{"id":"a-1","model":"up","stop_reason":null}}`, `{"type":"message_delta","delta":{"stop_reason":"end"}}`,
		}, want},
		"embeddings": {catalog.Embeddings, `{"model":"up","data":[]}`, nil, About{Model: "up"}},
		"no names": {catalog.Chat, `{"id":"a b","model":["up"],"choices":[{"finish_reason":"because\nof you"},{"finish_reason":7}]}`, []string{
			`{"id":"a b","model":["up"],"choices":[{"finish_reason":"because of you"}]}`,
		}, About{}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, stream := meter{dialect: c.dialect}, meter{dialect: c.dialect}
			plain.plain([]byte(c.plain))
			for _, e := range c.events {
				stream.event([]byte("data: " + e + "\n\n"))
			}
			if diff := cmp.Diff(c.want, plain.about); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, stream.about); c.events != nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
