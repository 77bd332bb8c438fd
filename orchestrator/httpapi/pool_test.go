package httpapi

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
)

func TestThePool(t *testing.T) {
	s := unstarted(t)
	s.pool = 2
	write(t, s.sources+"/actor/agent.yaml", "name: actor\nwarm: 1\n")
	s.start(Options{Token: token})

	t.Run("shows what waits before anybody calls", func(t *testing.T) {
		var pool api.PoolStats
		s.until(func() bool {
			pool = decode[api.PoolStats](t, s.do("GET", "/v1/pool", "").wants(t, 200))
			return pool.Waiting == 1
		})
		if pool.Size != 2 || len(pool.Units) != 1 || pool.Units[0].Unit != "actor" || pool.Units[0].Fixed != 1 || pool.Units[0].Hits != 0 {
			t.Errorf("pool %+v", pool)
		}
	})
	t.Run("has its figures among the metrics", func(t *testing.T) {
		text := s.do("GET", "/metrics", "").wants(t, 200).body
		for _, line := range []string{"aod_pool_size 2\n", `aod_pool_waiting{unit="actor"} 1` + "\n", `aod_pool_refills_total{unit="actor"} 1` + "\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("the metrics have no %s", line)
			}
		}
	})
	t.Run("gives what waits to the next run", func(t *testing.T) {
		waiting := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "")).Units[0].Waiting[0]
		record := s.run(`{}`)
		if record.Container == nil || record.Container.ID != waiting.Container || record.Container.WaitedMS <= 0 {
			t.Errorf("container %+v, not %s", record.Container, waiting.Container)
		}
		if pool := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "")); pool.Units[0].Hits != 1 || pool.Units[0].Misses != 0 {
			t.Errorf("pool %+v", pool)
		}
	})
	t.Run("is for those who have the token", func(t *testing.T) {
		s.do("GET", "/v1/pool", "", "Authorization: -").wants(t, 401)
	})
}

func TestAServerWithoutAPool(t *testing.T) {
	s := newServer(t, nil)
	s.run(`{}`)
	pool := decode[api.PoolStats](t, s.do("GET", "/v1/pool", "").wants(t, 200))
	if pool.Size != 0 || pool.Waiting != 0 || len(pool.Units) != 0 {
		t.Errorf("pool %+v", pool)
	}
}
