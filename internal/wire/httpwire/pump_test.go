package httpwire

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
)

func TestASequenceIsReadInItsOrderToItsEnd(t *testing.T) {
	broken := errors.New("disk away")
	items, wait := Pump(t.Context(), func(yield func(int, error) bool) {
		_ = yield(1, nil) && yield(2, nil) && yield(0, broken)
	})
	defer wait()
	for _, want := range []Item[int]{{1, nil}, {2, nil}, {0, broken}} {
		if got := <-items; got.Value != want.Value || !errors.Is(got.Err, want.Err) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, more := <-items; more {
		t.Error("there is more")
	}
}

func TestAReaderThatHasGoneEndsTheSequence(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	ended := false
	_, wait := Pump(ctx, func(yield func(int, error) bool) {
		for yield(1, nil) {
			continue
		}
		ended = true
	})
	leave()
	if wait(); !ended {
		t.Error("it goes on")
	}
}

func TestAPanicOfASequenceIsItsLastItem(t *testing.T) {
	items, wait := Pump(t.Context(), func(func(int, error) bool) { panic("canary") })
	defer wait()
	var panicked *PanicError
	if got := <-items; !errors.As(got.Err, &panicked) {
		t.Errorf("%+v", got)
	}
}

func TestNotesThatNobodyWantsAreDropped(t *testing.T) {
	NotesOf(t.Context()).Report(errors.New("x"), true)
	notes := &Notes{Run: "id"}
	if got := NotesOf(WithNotes(t.Context(), notes)); got != notes {
		t.Errorf("%+v", got)
	}
}

func TestAWriterKnowsWhetherAnAnswerHasBegun(t *testing.T) {
	for name, begin := range map[string]func(*Writer){
		"": func(*Writer) {}, "early hints": func(w *Writer) { w.WriteHeader(103) },
		"header": func(w *Writer) { w.WriteHeader(204) }, "body": func(w *Writer) { _, _ = w.Write(nil) }, "flush": func(w *Writer) { w.Flush() },
	} {
		w := Watch(httptest.NewRecorder())
		if begin(w); w.Begun() != (name != "" && name != "early hints") {
			t.Errorf("%s: %v", name, w.Begun())
		}
	}
}
