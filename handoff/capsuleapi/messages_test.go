package capsuleapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
)

func heardAs(n int64, text string) api.HeardMessage {
	return api.HeardMessage{N: n, MessageEvent: api.MessageEvent{ID: "m", Role: api.RoleUser, Parts: []api.Part{{Text: text}}, At: time.Unix(0, 0).UTC()}}
}

func TestMessagesAreReadFromANumberOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Said = []api.HeardMessage{heardAs(2, "a"), heardAs(5, "b")}
	for query, want := range map[string][]api.HeardMessage{
		"": {heardAs(2, "a"), heardAs(5, "b")}, "?after=2": {heardAs(5, "b")}, "?after=5": {}, "?after=0&wait=30s": {heardAs(2, "a"), heardAs(5, "b")}, "?after=5&wait=1ms": {},
	} {
		got := answered[messageList](t, w.do(http.MethodGet, "/messages"+query, ""), http.StatusOK)
		if diff := cmp.Diff(want, got.Messages); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	if strings.Contains(w.log.String(), `"b"`) {
		t.Error("the log has a message")
	}
}

func TestAMessageIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.News = make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		w.runs.Mu.Lock()
		defer w.runs.Mu.Unlock()
		w.runs.Said = []api.HeardMessage{heardAs(1, "late")}
		close(w.runs.News)
	}()
	got := answered[messageList](t, w.do(http.MethodGet, "/messages?wait=30s", ""), http.StatusOK)
	<-told
	if len(got.Messages) != 1 || got.Messages[0].Parts[0].Text != "late" {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoQuestionForMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, query := range []string{"?after=x", "?after=-1", "?wait=31s", "?wait=true", "?wait=-1s", "?more=1", "?after=1&after=2"} {
		if got := w.do(http.MethodGet, "/messages"+query, ""); got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, got.Code, got.Body)
		}
	}
}

func TestAMountHasTheOtherMethodsOfMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.do(http.MethodPost, "/messages", `{}`); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != http.MethodGet {
		t.Errorf("without a mount: %d %s", got.Code, got.Header())
	}
	w.runs.Said = []api.HeardMessage{heardAs(1, "a")}
	w.h = NewHandler(w.caller, w.runs, w.limits, nil, MessageMount(w.runs.Messages), Mount{Path: "/messages", New: func(*handoff.Broker) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}})
	if got := answered[messageList](t, w.do(http.MethodGet, "/messages", ""), http.StatusOK); len(got.Messages) != 1 {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/messages", "/messages/count_tokens"} {
		if got := w.do(http.MethodPost, path, `{}`); got.Code != http.StatusTeapot {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}
