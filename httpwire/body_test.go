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

	"github.com/agent-on-demand/aod/fault"
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
