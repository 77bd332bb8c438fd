package docker

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// self is what the kernel tells this process of the container that it may run in.
type self struct {
	ids    []string // what that container's id could be, the likeliest first
	points []string // where something is mounted
}

// selfLimit is how many bytes are read of a file of /proc/self.
const selfLimit = 4 << 20

// readSelf reads what there is to read: where a file is missing, as on another system
// than Linux, it tells nothing.
func readSelf() self {
	hostname, _ := os.Hostname() // one of three witnesses
	return selfOf(os.DirFS("/proc/self"), hostname)
}

// selfOf takes control groups for the best witness: with the network of another
// container come its hostname and its files.
func selfOf(proc fs.FS, hostname string) self {
	mounts := mountsOf(linesOf(proc, "mountinfo"))
	var s self
	s.ids = appendNew(s.ids, cgroupIDs(linesOf(proc, "cgroup"))...)
	for _, m := range mounts {
		s.points = append(s.points, m.point)
		s.ids = appendNew(s.ids, m.owner()...)
	}
	if shortIDRule().MatchString(hostname) &&
		!slices.ContainsFunc(s.ids, func(id string) bool { return strings.HasPrefix(id, hostname) }) {
		s.ids = append(s.ids, hostname)
	}
	return s
}

// shortIDRule is what engines make a container's hostname of, its id's beginning.
var shortIDRule = lazyregexp.New(`^[0-9a-f]{12}$`)

// linesOf returns the whole lines of a small file, as far as they can be read.
func linesOf(files fs.FS, name string) []string {
	f, err := files.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	scanner := bufio.NewScanner(io.LimitReader(f, selfLimit))
	scanner.Buffer(make([]byte, 0, 4<<10), 64<<10)
	var lines []string
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines
}

// groupRule finds the id in a part of a control group's path: docker/ID,
// docker-ID.scope, libpod-ID.scope/container.
var groupRule = lazyregexp.New(`^(?:[a-z-]*-)?([0-9a-f]{64})(?:\.scope)?$`)

// cgroupIDs returns the innermost id of each line of /proc/self/cgroup: a container may
// run in another one.
func cgroupIDs(lines []string) []string {
	var ids []string
	for _, line := range lines {
		parts := strings.Split(line, "/") // the first is "4:memory:"
		for _, part := range slices.Backward(parts) {
			if found := groupRule().FindStringSubmatch(part); found != nil {
				ids = appendNew(ids, found[1])
				break
			}
		}
	}
	return ids
}

// mountLine is a line of /proc/self/mountinfo (man 5 proc).
type mountLine struct {
	root  string // what of its file system is mounted
	point string // where
}

func mountsOf(lines []string) []mountLine {
	var mounts []mountLine
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 10 || !strings.HasPrefix(fields[4], "/") {
			continue
		}
		mounts = append(mounts, mountLine{root: unescape(fields[3]), point: unescape(fields[4])})
	}
	return mounts
}

// unescape reads the four characters that the kernel writes as octal numbers.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// ownerRule finds the id in the path of a file that an engine makes for each container:
// Docker in containers/ID, Podman in overlay-containers/ID/userdata.
var ownerRule = lazyregexp.New(`containers/([0-9a-f]{64})/(?:userdata/)?(?:hosts|hostname|resolv\.conf)$`)

// owner returns the id of the container that the mount was made for. Other mounts with
// an id in their paths may be those of a neighbour.
func (m mountLine) owner() []string {
	switch m.point {
	case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf":
		if found := ownerRule().FindStringSubmatch(m.root); found != nil {
			return found[1:]
		}
	}
	return nil
}

func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
