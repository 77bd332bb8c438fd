//go:build linux

package pid1

import (
	"strings"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// procNet is where the kernel tells of our network namespace, which has no other process
// than the container's.
const procNet = "/proc/net"

// attempts are the counters of which each attempt at the network moves one. In a namespace
// without a way out a connection and a datagram have no route; to the namespace's own
// addresses, such as a resolver that isn't there, both come off. TCP counts for IPv4 and
// IPv6 together. Where IPv6 is switched off nothing counts what is tried by it.
var attempts = []struct{ table, key string }{
	{"Ip:", "OutNoRoutes"},
	{"Tcp:", "ActiveOpens"},
	{"Udp:", "OutDatagrams"},
}

var attempts6 = []string{"Ip6OutNoRoutes", "Udp6OutDatagrams"}

// netAttempts adds up what was tried. Our own relay opens none of these: it is listened to,
// and speaks to a socket of the file system.
func netAttempts(dir string) int64 {
	var buf [8 << 10]byte
	tables := string(readSmall(dir+"/snmp", buf[:]))
	sum := int64(0)
	for _, a := range attempts {
		n, ok := column(tables, a.table, a.key)
		if !ok {
			return initreport.NotCounted
		}
		sum += n
	}
	for line := range strings.Lines(string(readSmall(dir+"/snmp6", buf[:]))) { // missing without IPv6
		fields := strings.Fields(line)
		for _, key := range attempts6 {
			if len(fields) == 2 && fields[0] == key {
				n, _ := natural(fields[1])
				sum += n
			}
		}
	}
	return sum
}

// column returns a number of a table of two lines: the first has the names.
func column(tables, table, key string) (int64, bool) {
	var names []string
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != table:
		case names == nil:
			names = fields
		default:
			return under(names, fields, key)
		}
	}
	return 0, false
}

func under(names, values []string, key string) (int64, bool) {
	for i, name := range names {
		if name == key && i < len(values) {
			return natural(values[i])
		}
	}
	return 0, false
}
