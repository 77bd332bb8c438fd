package httpwire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestABodyIsReadUpToItsLimit(t *testing.T) {
	for text, fits := range map[string]bool{"": true, "1234": true, "12345": false, "123456789": false} {
		for name, source := range map[string]io.Reader{
			"whole": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text)),
			"bounded by net/http": http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader(text)), 4),
		} {
			body := NewBody(source, 4)
			got, err := io.ReadAll(body)
			if fits && (err != nil || string(got) != text) || !fits && (!fault.Is(err, fault.TooLarge) || string(got) != "1234") {
				t.Errorf("%s %q: %q %v", name, text, got, err)
			}
			if _, again := body.Read(make([]byte, 1)); !fits && !errors.Is(again, err) {
				t.Errorf("%s %q: it does not stay: %v", name, text, again)
			}
		}
	}
}

func TestABodyThatBreaksOffIsABadRequest(t *testing.T) {
	for cause, want := range map[error]string{
		os.ErrDeadlineExceeded:   "the request's body came too slowly",
		io.ErrUnexpectedEOF:      "the request's body broke off",
		errors.New("no payload"): "the request's body broke off",
	} {
		body := NewBody(iotest.ErrReader(cause), 4)
		_, err := io.ReadAll(body)
		if !fault.Is(err, fault.BadRequest) || fault.Public(err).Msg != want || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}

func TestTheErrorOfABodyComesBeforeWhatItLedTo(t *testing.T) {
	other := errors.New("an archive ends amid a file")
	body := NewBody(strings.NewReader("12345"), 4)
	if got := body.Or(other); !errors.Is(got, other) {
		t.Errorf("of a good body: %v", got)
	}
	_, _ = io.ReadAll(body)
	if got := body.Or(other); !fault.Is(got, fault.TooLarge) {
		t.Errorf("of a body that is too large: %v", got)
	}
	if got := body.Or(nil); got != nil {
		t.Errorf("where nothing went wrong: %v", got)
	}
}

func TestABodyIsBoundedAndItsErrorsAreFaults(t *testing.T) {
	cases := []struct {
		name   string
		source io.Reader
		kind   fault.Kind
		text   string
	}{
		{"at the limit", strings.NewReader("12345"), 0, "12345"},
		{"over the limit", strings.NewReader("123456"), fault.TooLarge, "12345"},
		{"too slow", io.MultiReader(strings.NewReader("12"), broken{os.ErrDeadlineExceeded}), fault.BadRequest, "12"},
		{"broken off", broken{io.ErrUnexpectedEOF}, fault.BadRequest, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := NewBody(c.source, 5)
			text, err := io.ReadAll(b)
			if string(text) != c.text || (err != nil) != (c.kind != 0) || err != nil && fault.KindOf(err) != c.kind {
				t.Errorf("%q, %v", text, err)
			}
			if _, again := b.Read(make([]byte, 1)); err != nil && !errors.Is(again, err) {
				t.Errorf("then %v", again)
			}
			if buried := errors.New("multipart: x"); err != nil && !errors.Is(b.Or(buried), err) {
				t.Error("the body's own error is buried")
			}
		})
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
