package workers

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	mcprelay "github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Whatever answers are lost, a program reads every byte once, and a writer waits where nobody reads.
func TestWhatAProgramReadsComesOnce(t *testing.T) {
	var all, read []byte
	for i := range 2*mostAhead + 100 {
		all = append(all, byte(i*7))
	}
	var s hose
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(all)
		_ = s.Close()
		written <- err
	}()
	for ended := false; !ended || len(read) < len(all); {
		<-s.more(int64(len(read)))
		var some []byte
		some, ended = s.from(int64(len(read)))
		if len(some) > mostAhead {
			t.Fatalf("%d bytes are kept", len(some))
		}
		if rand.IntN(3) > 0 { // the answer came
			read = append(read, some[:rand.IntN(len(some)+1)]...)
		}
	}
	if err := <-written; err != nil || !bytes.Equal(read, all) {
		t.Errorf("%v, %d of %d bytes", err, len(read), len(all))
	}
}

// What a program writes is taken once, in its order.
func TestWhatAProgramWritesIsTakenOnce(t *testing.T) {
	got := make(chan string, 10)
	session := mcprelay.New(mcprelay.Options{}, func(text []byte) error { got <- string(text); return nil })
	talk := talkOf(&run.Run{Extra: session})
	talk.begin(&run.Run{})
	line := []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n")
	for _, said := range []wire.Said{
		{Bytes: line[:10]}, {Bytes: line[:10]}, {Bytes: line[:20]}, {Offset: 5, Bytes: line[5:]}, {Offset: int64(len(line)), Bytes: line},
	} {
		if err := talk.take(said); err != nil {
			t.Fatal(err)
		}
	}
	if talk.take(wire.Said{Offset: 1 << 20}) == nil {
		t.Error("a gap is taken")
	}
	for range 2 {
		if text := <-got; text+"\n" != string(line) {
			t.Errorf("the client got %q", text)
		}
	}
	if err := talk.take(wire.Said{Offset: int64(2 * len(line)), Ended: true}); err != nil {
		t.Fatal(err)
	}
	over := talk.heard(context.Background(), wire.Hear{Ended: true}).Over
	if over == nil || over.Well || over.Message != "" {
		t.Errorf("it ended with %+v", over)
	}
	talk.end(&run.Run{})
}

// An order whose key was in use before is one of its own.
func TestAnOrderIsSentAgainThatWasDoneBefore(t *testing.T) {
	w, sent := newWorker("big"), map[string]int64{}
	for range 2 {
		w.put("rest/a", wire.Order{Rest: "a"})
		if orders := w.box.unsent(sent); len(orders) != 1 {
			t.Errorf("%d orders", len(orders))
		}
		if orders := w.box.unsent(sent); len(orders) != 0 {
			t.Errorf("%d orders again", len(orders))
		}
		w.drop("rest/a")
	}
}
