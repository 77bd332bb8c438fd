package models

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway"
)

func TestTheFiguresOfATranscriptHaveAnEnd(t *testing.T) {
	script := newTranscript(t.TempDir())
	script.size, script.full = maxFigures, true
	for range 2 {
		if _, err := script.add(api.ModelCall{}, gateway.Exchange{Request: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(script.path); script.n != 2 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d calls, and a file: %v", script.n, err)
	}
}
