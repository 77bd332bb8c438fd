//go:build linux

package pid1

import (
	"net"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAProgramEndsWithItsHost(t *testing.T) {
	r := sandbox{program: []string{"-leash", initreport.ControlPath, "--", "/probe", "wait"}}.runWith(t, func(*net.UnixConn) {}) // it goes at once
	if report := r.report(t); !report.Terminated || r.code != 128+15 {
		t.Errorf("%+v", r)
	}
}
