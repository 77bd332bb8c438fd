package runtime

import (
	"hash/fnv"
	"os"
	"strconv"
)

// unprivileged is the user and group id of sandboxes where AOD itself is root.
const unprivileged = 65532

// sandboxUser returns "uid:gid" for the container: AOD's own user, whose files both sides can
// then read and remove, or an unprivileged one where AOD is root. That one may have a uid of
// its own; the group is the same for all, as images may have files for it.
func sandboxUser(own int) string {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid <= 0 {
		uid, gid = unprivileged, unprivileged
		if own > 0 {
			uid = own
		}
	}
	return strconv.Itoa(uid) + ":" + strconv.Itoa(gid)
}

// SandboxOwner returns the user and group of what a sandbox is to own, given its own uid as in a
// Spec; zeros where that is AOD's own user.
func SandboxOwner(own int) (uid, gid int) {
	if os.Geteuid() > 0 {
		return 0, 0
	}
	if own > 0 {
		return own, unprivileged
	}
	return unprivileged, unprivileged
}

// UIDs is a range of user ids, both ends included. The zero range is empty.
type UIDs struct{ First, Last int }

// Of returns the user id of a sandbox. The kernel counts some things by user, such as inotify
// instances, and one sandbox could take them from all others with the same id. It follows
// from the sandbox's id, so that nobody has to remember or share which are taken: two sandboxes
// have the same one as rarely as the range is large. It is 0 where the range is empty.
func (u UIDs) Of(id string) int {
	if u.First <= 0 || u.Last < u.First {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))                               // it never fails
	return u.First + int(h.Sum64()%uint64(u.Last-u.First+1)) //nolint:gosec // within the range
}
