package a2apeer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer/peertest"
)

// at returns the agent at the first interface of its card.
func at(t *testing.T, opts a2apeer.Options) (*a2apeer.Agent, a2apeer.Card) {
	t.Helper()
	c, err := a2apeer.New(opts)
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

func message(text string) a2apeer.Message {
	return a2apeer.Message{ID: "m-" + text, Parts: []a2apeer.Part{a2apeer.TextPart(text)}}
}

// textOf joins the texts of a task.
func textOf(task a2apeer.Task) string {
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
func ends(t *testing.T, a *a2apeer.Agent, task a2apeer.Task) a2apeer.Task {
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
			a, card := at(t, a2apeer.Options{URL: far.URL, Token: "s3cret"})
			if i := card.Interfaces[0]; card.Name != "Tester" || !card.Streams || string(i.Binding) != string(form.Binding) || string(i.Version) != string(form.Version) {
				t.Fatalf("%+v", card)
			}
			t.Run("sent and looked at", func(t *testing.T) {
				task, err := a.Send(t.Context(), message("chunks"))
				if err != nil {
					t.Fatal(err)
				}
				if task = ends(t, a, task); task.State != a2apeer.Completed || textOf(task) != "one |two |three" {
					t.Errorf("%s %q", task.State, textOf(task))
				}
			})
			t.Run("streamed", func(t *testing.T) {
				var states []a2apeer.State
				task, err := a.Stream(t.Context(), message("chunks"), func(t a2apeer.Task) error {
					states = append(states, t.State)
					return nil
				})
				if err != nil || task.State != a2apeer.Completed || textOf(task) != "one |two |three" || states[0] != a2apeer.Submitted || !slices.Contains(states, a2apeer.Working) {
					t.Errorf("%v, %s %q, %v", states, task.State, textOf(task), err)
				}
			})
			t.Run("subscribed to, and ended", func(t *testing.T) {
				task, err := a.Send(t.Context(), message("wait"))
				if err != nil || task.State.Over() {
					t.Fatalf("%+v, %v", task, err)
				}
				followed := make(chan a2apeer.Task, 1)
				heard := make(chan struct{}, 100)
				go func() {
					last, _ := a.Subscribe(t.Context(), task, func(a2apeer.Task) error { heard <- struct{}{}; return nil })
					followed <- last
				}()
				if form.Version == "1.0" { // 0.3 says nothing before there is a change
					<-heard
				}
				ended, err := a.Cancel(t.Context(), task.ID)
				if err != nil || ended.State != a2apeer.Canceled || far.Cancels() != 1 {
					t.Errorf("%+v, %v", ended, err)
				}
				if form.Version == "1.0" {
					if last := <-followed; last.State != a2apeer.Canceled {
						t.Errorf("the stream ended with %s", last.State)
					}
				}
				done, err := a.Send(t.Context(), message("x"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Cancel(t.Context(), ends(t, a, done).ID); !a2apeer.IsReason(err, "TASK_NOT_CANCELABLE") || !fault.Is(err, fault.Conflict) {
					t.Errorf("of one that is over: %v", err)
				}
			})
			t.Run("asking", func(t *testing.T) {
				task, err := a.Stream(t.Context(), message("ask"), func(a2apeer.Task) error { return nil })
				if err != nil || task.State != a2apeer.InputRequired || task.Words != "Which one?" {
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
				m.Parts = append(m.Parts, a2apeer.DataPart([]byte(`{"n":9007199254740991,"l":[1,"x"]}`)), a2apeer.FilePart("a.txt", []byte("abc"), "report"))
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
				if err != nil || task.ID != "" || task.State != a2apeer.Completed || textOf(task) != "just a word" {
					t.Errorf("%+v, %v", task, err)
				}
			})
			t.Run("one that isn't there", func(t *testing.T) {
				if _, err := a.Get(t.Context(), "nothing"); !a2apeer.IsReason(err, "TASK_NOT_FOUND") || !fault.Is(err, fault.NotFound) {
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
		c, err := a2apeer.New(a2apeer.Options{URL: far.URL})
		if err != nil {
			t.Fatal(err)
		}
		card, err := c.Card(t.Context())
		if err != nil || len(card.Interfaces) != 2 || card.Interfaces[1].Version != a2apeer.V03 {
			t.Fatalf("%+v, %v", card, err)
		}
		newer, err := c.At(card.Interfaces[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err = newer.Send(t.Context(), message("x")); !a2apeer.IsUnspoken(err) || errors.Is(err, a2apeer.ErrUnheard) {
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
	c, err := a2apeer.New(a2apeer.Options{URL: far.URL, Token: "s3cret"})
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
		if err := c.File(t.Context(), elsewhere, &b, 100); !errors.Is(err, a2apeer.ErrElsewhere) {
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
	a, _ := at(t, a2apeer.Options{URL: far.URL})
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(t.Context())
	task, err := a.Stream(ctx, message("wait"), func(task a2apeer.Task) error {
		if task.State == a2apeer.Working {
			cancel(because)
		}
		return nil
	})
	if !errors.Is(err, because) || task.ID == "" {
		t.Errorf("%+v, %v", task, err)
	}
	stop := errors.New("stop")
	if _, err := a.Stream(t.Context(), message("wait"), func(a2apeer.Task) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	close(far.Release)
}
