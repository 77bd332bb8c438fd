//go:build linux

package pid1

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestInitEndsTheStreamsWithALine(t *testing.T) {
	ending := append([]string{"-end", "lines"}, connected("/probe", "exit", "0")...)
	t.Run("that its report names", func(t *testing.T) {
		r := sandbox{program: ending}.runWith(t, func(c *net.UnixConn) { _, _ = io.ReadAll(c) })
		id := r.report(t).LogEnd
		line := initreport.EndHead + id + initreport.EndTail
		if len(id) != initreport.EndIDBytes || !strings.HasSuffix(r.stdout, line) || !strings.HasSuffix(r.stderr, line) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("where its host listens", func(t *testing.T) {
		r := sandbox{program: ending}.run(t, nil)
		if id := r.report(t).LogEnd; id != "" || strings.Contains(r.stdout+r.stderr, initreport.EndHead) {
			t.Errorf("%+v", r)
		}
	})
}
