package peer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/protocol/a2a/peer"
	"github.com/agent-on-demand/aod/protocol/a2a/peertest"
)

// at returns the agent at the first interface of its card.
func at(t *testing.T, opts peer.Options) (*peer.Agent, peer.Card) {
	t.Helper()
	c, err := peer.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	card, err := c.Card(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.At(card.Interfaces[0])
	if err != nil {
		t.Fatal(err)
	}
	return a, card
}

func message(text string) peer.Message {
	return peer.Message{ID: "m-" + text, Parts: []peer.Part{peer.TextPart(text)}}
}

// textOf joins the texts of a task.
func textOf(task peer.Task) string {
	var all []string
	for _, artifact := range task.Artifacts {
		for _, part := range artifact.Parts {
			if part.Text != nil {
				all = append(all, *part.Text)
			}
		}
	}
	return strings.Join(all, "|")
}

// ends looks at a task until it is over or asks.
func ends(t *testing.T, a *peer.Agent, task peer.Task) peer.Task {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !task.State.Over() && !task.State.Asks(); {
		var err error
		if task, err = a.Get(t.Context(), task.ID); err != nil || time.Now().After(deadline) {
			t.Fatalf("%s: %v", task.State, err)
		}
	}
	return task
}

func TestATaskIsTheSameInEachForm(t *testing.T) {
	for _, form := range peertest.Forms {
		t.Run(form.Name(), func(t *testing.T) {
			far := peertest.New(t, form, true)
			a, card := at(t, peer.Options{URL: far.URL, Token: "s3cret"})
			if i := card.Interfaces[0]; card.Name != "Tester" || !card.Streams || string(i.Binding) != string(form.Binding) || string(i.Version) != string(form.Version) {
				t.Fatalf("%+v", card)
			}
			t.Run("sent and looked at", func(t *testing.T) {
				task, err := a.Send(t.Context(), message("chunks"))
				if err != nil {
					t.Fatal(err)
				}
				if task = ends(t, a, task); task.State != peer.Completed || textOf(task) != "one |two |three" {
					t.Errorf("%s %q", task.State, textOf(task))
				}
			})
			t.Run("streamed", func(t *testing.T) {
				var states []peer.State
				task, err := a.Stream(t.Context(), message("chunks"), func(t peer.Task) error {
					states = append(states, t.State)
					return nil
				})
				if err != nil || task.State != peer.Completed || textOf(task) != "one |two |three" || states[0] != peer.Submitted || !slices.Contains(states, peer.Working) {
					t.Errorf("%v, %s %q, %v", states, task.State, textOf(task), err)
				}
			})
			t.Run("subscribed to, and ended", func(t *testing.T) {
				task, err := a.Send(t.Context(), message("wait"))
				if err != nil || task.State.Over() {
					t.Fatalf("%+v, %v", task, err)
				}
				followed := make(chan peer.Task, 1)
				heard := make(chan struct{}, 100)
				go func() {
					last, _ := a.Subscribe(t.Context(), task, func(peer.Task) error { heard <- struct{}{}; return nil })
					followed <- last
				}()
				if form.Version == "1.0" { // 0.3 says nothing before there is a change
					<-heard
				}
				ended, err := a.Cancel(t.Context(), task.ID)
				if err != nil || ended.State != peer.Canceled || far.Cancels() != 1 {
					t.Errorf("%+v, %v", ended, err)
				}
				if form.Version == "1.0" {
					if last := <-followed; last.State != peer.Canceled {
						t.Errorf("the stream ended with %s", last.State)
					}
				}
				done, err := a.Send(t.Context(), message("x"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Cancel(t.Context(), ends(t, a, done).ID); !peer.IsReason(err, "TASK_NOT_CANCELABLE") || !fault.Is(err, fault.Conflict) {
					t.Errorf("of one that is over: %v", err)
				}
			})
			t.Run("asking", func(t *testing.T) {
				task, err := a.Stream(t.Context(), message("ask"), func(peer.Task) error { return nil })
				if err != nil || task.State != peer.InputRequired || task.Words != "Which one?" {
					t.Fatalf("%+v, %v", task, err)
				}
				answer := message("this")
				answer.Task, answer.Context = task.ID, task.Context
				again, err := a.Send(t.Context(), answer)
				if err != nil {
					t.Fatal(err)
				}
				for again.Mark == task.Mark { // it may be told of once more before it goes on
					if again, err = a.Get(t.Context(), task.ID); err != nil {
						t.Fatal(err)
					}
				}
				if again = ends(t, a, again); again.ID != task.ID || textOf(again) != "answered this" {
					t.Errorf("%+v", again)
				}
			})
			t.Run("with parts of each kind", func(t *testing.T) {
				m := message("echo")
				m.Parts = append(m.Parts, peer.DataPart([]byte(`{"n":9007199254740991,"l":[1,"x"]}`)), peer.FilePart("a.txt", []byte("abc"), "report"))
				task, err := a.Send(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				parts := ends(t, a, task).Artifacts[0].Parts
				if len(parts) != 3 || string(parts[1].Data) != `{"l":[1,"x"],"n":9007199254740991}` || string(parts[2].Raw) != "abc" ||
					parts[2].Name != "a.txt" || parts[2].Field != "report" {
					t.Errorf("%+v", parts)
				}
			})
			t.Run("a message in its place", func(t *testing.T) {
				task, err := a.Send(t.Context(), message("message"))
				if err != nil || task.ID != "" || task.State != peer.Completed || textOf(task) != "just a word" {
					t.Errorf("%+v, %v", task, err)
				}
			})
			t.Run("one that isn't there", func(t *testing.T) {
				if _, err := a.Get(t.Context(), "nothing"); !peer.IsReason(err, "TASK_NOT_FOUND") || !fault.Is(err, fault.NotFound) {
					t.Error(err)
				}
			})
			headers, _ := far.Headers()
			for _, h := range headers {
				if h.Get("Authorization") != "Bearer s3cret" || h.Get("User-Agent") != "aod" {
					t.Fatalf("a request has the headers %v", h)
				}
			}
		})
	}
}

func TestAnAgentOfVersion03BehindACardOf10IsFound(t *testing.T) {
	for _, form := range peertest.Forms[2:] {
		far := peertest.New(t, form, true)
		far.Card.SupportedInterfaces[0].ProtocolVersion = "1.0"
		c, err := peer.New(peer.Options{URL: far.URL})
		if err != nil {
			t.Fatal(err)
		}
		card, err := c.Card(t.Context())
		if err != nil || len(card.Interfaces) != 2 || card.Interfaces[1].Version != peer.V03 {
			t.Fatalf("%+v, %v", card, err)
		}
		newer, err := c.At(card.Interfaces[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err = newer.Send(t.Context(), message("x")); !peer.IsUnspoken(err) || errors.Is(err, peer.ErrUnheard) {
			t.Errorf("%s: %v", form.Name(), err)
		}
		older, err := c.At(card.Interfaces[1])
		if err != nil {
			t.Fatal(err)
		}
		if task, err := older.Send(t.Context(), message("x")); err != nil || len(far.Messages()) != 1 {
			t.Errorf("%s: %+v, %v", form.Name(), task, err)
		}
	}
}

func TestAFileIsFetchedFromItsOriginAlone(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], false)
	c, err := peer.New(peer.Options{URL: far.URL, Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	most := int64(len(peertest.FarFile))
	if err := c.File(t.Context(), far.URL+"/files/x", &b, most-1); !fault.Is(err, fault.TooLarge) {
		t.Errorf("more than is taken: %q, %v", b.String(), err)
	}
	b.Reset()
	if err := c.File(t.Context(), far.URL+"/files/x", &b, most); err != nil || b.String() != peertest.FarFile {
		t.Errorf("%q, %v", b.String(), err)
	}
	other := peertest.New(t, peertest.Forms[0], false)
	for _, elsewhere := range []string{other.URL + "/files/x", "file:///etc/passwd", "//" + other.URL, strings.Replace(far.URL, "http://", "http://u:p@", 1), "\x00"} {
		if err := c.File(t.Context(), elsewhere, &b, 100); !errors.Is(err, peer.ErrElsewhere) {
			t.Errorf("%q: %v", elsewhere, err)
		}
	}
	if asked, _ := other.Headers(); len(asked) > 0 {
		t.Error("another origin was asked")
	}
	if err := c.File(t.Context(), far.URL+"/nothing", &b, 100); err == nil {
		t.Error("a file that isn't there")
	}
}

func TestTheEndOfTheContextIsTheError(t *testing.T) {
	far := peertest.New(t, peertest.Forms[0], true)
	a, _ := at(t, peer.Options{URL: far.URL})
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(t.Context())
	task, err := a.Stream(ctx, message("wait"), func(task peer.Task) error {
		if task.State == peer.Working {
			cancel(because)
		}
		return nil
	})
	if !errors.Is(err, because) || task.ID == "" {
		t.Errorf("%+v, %v", task, err)
	}
	stop := errors.New("stop")
	if _, err := a.Stream(t.Context(), message("wait"), func(peer.Task) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	close(far.Release)
}
