package trusted

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// Expire has a token of a file be one whose time is over.
func Expire(t testing.TB, file, name string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	var document struct {
		Tokens []map[string]any `json:"tokens"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	for _, token := range document.Tokens {
		if token["name"] == name {
			token["expires_at"] = time.Now().Add(-time.Second).UTC()
		}
	}
	if err == nil {
		raw, err = json.Marshal(document)
	}
	if err == nil {
		err = safefs.Replace(file, raw, safefs.ReplaceOptions{Mode: 0o600})
	}
	if err != nil {
		t.Fatal(err)
	}
}
