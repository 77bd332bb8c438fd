//go:build linux

package pid1

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// snmp is the kernel's table with numbers of ours.
func snmp(noRoutes, opens, datagrams string) string {
	return "Ip: Forwarding DefaultTTL OutDiscards OutNoRoutes\nIp: 1 64 7 " + noRoutes +
		"\nIcmp: OutMsgs\nIcmp: 7\nTcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens\nTcp: 1 -1 " + opens + " 7" +
		"\nUdp: InDatagrams OutDatagrams\nUdp: 7 " + datagrams + "\nUdpLite: InDatagrams OutDatagrams\nUdpLite: 7 7\n"
}

func TestNetAttempts(t *testing.T) {
	const snmp6 = "Ip6InReceives                   \t7\nIp6OutNoRoutes                  \t1000\nUdp6OutDatagrams                \t2000\n"
	for _, c := range []struct {
		name, snmp, snmp6 string
		want              int64
	}{
		{"nothing was tried", snmp("0", "0", "0"), "", 0},
		{"each kind counts", snmp("1", "20", "300"), "", 321},
		{"so does IPv6", snmp("1", "20", "300"), snmp6, 3321},
		{"no tables", "", snmp6, initreport.NotCounted},
		{"a table less", strings.Replace(snmp("1", "2", "3"), "Tcp:", "Sctp:", 2), "", initreport.NotCounted},
		{"names without numbers", "Ip: OutNoRoutes\nTcp: ActiveOpens\nUdp: OutDatagrams\n", "", initreport.NotCounted},
		{"fewer numbers than names", strings.Replace(snmp("1", "2", "3"), "7 3\n", "7\n", 1), "", initreport.NotCounted},
		{"a number that is none", snmp("x", "2", "3"), "", initreport.NotCounted},
		{"a number below nothing", snmp("-1", "2", "3"), "", initreport.NotCounted},
		{"IPv6 without sense", snmp("0", "0", "0"), "Ip6OutNoRoutes x\nUdp6OutDatagrams\n\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"snmp": c.snmp, "snmp6": c.snmp6} {
				if text != "" {
					writeFile(t, filepath.Join(dir, name), text, 0o644)
				}
			}
			if got := netAttempts(dir); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhatIsTriedInASandboxIsCounted(t *testing.T) {
	for _, c := range []struct {
		network, address string
		counted          bool
	}{
		{"tcp4", "192.0.2.1:80", true},
		{"tcp4", "127.0.0.1:9", true},
		{"tcp4", "127.0.0.1:7070", true}, // the relay, which is the program's own doing
		{"udp4", "192.0.2.1:53", true},
		{"udp4", "127.0.0.11:53", true},
		{"unix", "/nothing", false},
	} {
		t.Run(fmt.Sprintf("%s to %s", c.network, c.address), func(t *testing.T) {
			r := inSandbox(t, "--", "/probe", "try", c.network, c.address)
			if n := r.report(t).NetAttempts; n < 0 || n > 0 != c.counted {
				t.Errorf("counted %d: %+v", n, r)
			}
		})
	}
}
