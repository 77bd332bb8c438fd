//go:build linux

package pid1

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// A fork bomb or a memory hog must end as an outcome with the limit in the report. The
// bombs run several times, because what they would break in init is a matter of luck; `make long` runs more.
var bombs, _ = strconv.Atoi(cmp.Or(os.Getenv("AOD_BOMBS"), "2"))

// roomy is the memory for a bomb: at the process limit it takes about 64 MB at times, and
// would end by that.
var roomy = []string{"--memory", "256m", "--memory-swap", "256m"}

// roomiest is for 2,000 processes: a busy kernel takes its time to give back what they had.
var roomiest = []string{"--memory", "1g", "--memory-swap", "1g"}

func TestForkBomb(t *testing.T) {
	t.Run("the program ends beside the bomb", func(t *testing.T) {
		for range bombs {
			r := sandbox{engine: roomy, program: []string{"--", "/probe", "bomb", "7"}}.run(t, nil)
			if report := r.report(t); r.code != 7 || report.PIDsLimitHits == 0 || r.stderr != "" {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("the program is the bomb and gets a signal", func(t *testing.T) {
		for range bombs {
			r := sandbox{engine: roomy, program: []string{"--", "/probe", "bomb-self"}}.run(t, signalTo(t, syscall.SIGTERM))
			if report := r.report(t); r.code != 143 || report.PIDsLimitHits == 0 || r.stderr != "" {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestMemoryHog(t *testing.T) {
	limit := []string{"--memory", "32m", "--memory-swap", "32m"}
	t.Run("the program is killed, not its init", func(t *testing.T) {
		for range bombs {
			r := sandbox{engine: limit, program: []string{"--", "/probe", "hog"}}.run(t, nil)
			if report := r.report(t); r.code != 137 || report.Signal != 9 || report.OOMKills == 0 {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("a program survives its child", func(t *testing.T) {
		r := sandbox{engine: limit, program: []string{"--", "/probe", "hog-child"}}.run(t, nil)
		if report := r.report(t); r.code != 5 || report.OOMKills == 0 {
			t.Errorf("%+v", r)
		}
	})
}
