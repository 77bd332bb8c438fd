//go:build linux

package pid1

import (
	"net"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAProgramEndsWithItsHost(t *testing.T) {
	s := sandbox{program: []string{"-leash", initreport.ControlPath, "--", "/probe", "wait"}}
	for range 5 { // it has a second to end by SIGTERM, which can be too little on a busy machine
		r := s.runWith(t, func(*net.UnixConn) {}) // the host goes at once
		if report := r.report(t); !report.Terminated || r.code != 128+15 && r.code != 128+9 {
			t.Fatalf("%+v", r)
		}
		if r.code == 128+15 {
			return
		}
	}
	t.Error("it was killed each time")
}
