package contract

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheEngineFetchesNothing(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	if _, err := engineFor(map[string]any{"$ref": server.URL + "/schema.json"}); err == nil || asked {
		t.Errorf("error %v, asked %v", err, asked)
	}
}
