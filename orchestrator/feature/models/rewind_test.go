package models

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWhereATurnBegan(t *testing.T) {
	t.Parallel()
	const at = `"at":"2026-01-01T00:00:0`
	lines := []string{
		`{"n":1,` + at + `1Z","dialect":"chat","status":200,"id":"a","request":{"messages":[]},"answer":{}}`,
		`{"n":2,` + at + `2Z","dialect":"chat","status":400,"rule":"context","id":"b","request":{"messages":[]},"answer":{}}`,
		`{"n":3,` + at + `3Z","dialect":"embeddings","status":200,"id":"c","request":{},"answer":{}}`,
		`{"n":4,` + at + `4Z","dialect":"chat","status":200,"id":"d"}`,
		`{"n":5,` + at + `5Z","dialect":"chat","status":200,"id":"e","request":{"messages":[]},"answer":{}}`,
	}
	dir, f := t.TempDir(), &Feature{}
	if err := os.WriteFile(transcriptIn(dir), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, second := range map[int]int{1: 1, 2: 4} {
		if began, err := f.Turn(dir, n); err != nil || !began.Equal(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)) {
			t.Errorf("turn %d: %v, %v", n, began, err)
		}
	}
	for n, says := range map[int]string{3: "turn 2 isn't kept", 4: "turn 2 isn't kept", 5: "no turn 5"} {
		if _, err := f.Turn(dir, n); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), says) || fault.Public(err).Hint == "" {
			t.Errorf("turn %d: %v", n, err)
		}
	}
	if _, err := f.Turn(t.TempDir(), 1); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}
