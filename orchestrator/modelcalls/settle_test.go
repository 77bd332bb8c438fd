package modelcalls

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestARunIsSettledWhenItsRequestsHaveEnded(t *testing.T) {
	for name, c := range map[string]struct{ request, settled time.Duration }{
		"no request":                {0, 0},
		"one that ends":             {3 * time.Second, 3 * time.Second},
		"one that outlives its run": {time.Hour, settleTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Options{Run: &run.Run{}, Logger: slog.New(slog.DiscardHandler)})
				models := a.counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(c.request) }))
				for range 2 {
					go models.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1", nil))
				}
				synctest.Wait()
				cancelled, cancel := context.WithCancel(t.Context()) // as the run may be
				cancel()
				start := time.Now()
				a.Settle(cancelled)
				if took := time.Since(start); took != c.settled {
					t.Errorf("it takes %v", took)
				}
				time.Sleep(c.request) // until it ends
			})
		})
	}
}
