package runtime

import (
	"errors"
	"fmt"
	"strings"
)

// accountFiles are the files below aodDir that the sandbox has in its /etc.
var accountFiles = []string{"passwd", "group"}

// writeAccount writes the files in which programs look for the name and the home of the
// sandbox's user: without them ssh, git and many a runtime refuse to start.
func (l Layout) writeAccount(spec Spec) error {
	if !spec.Account {
		return nil
	}
	uid, gid, _ := strings.Cut(sandboxUser(spec.UID), ":")
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nagent:x:%s:%s:agent:%s:/bin/sh\n", uid, gid, spec.home(l))
	group := fmt.Sprintf("root:x:0:\nagent:x:%s:\n", gid)
	return unwritable(errors.Join(
		writeFile(l.path("aod/passwd"), []byte(passwd), 0o644),
		writeFile(l.path("aod/group"), []byte(group), 0o644),
	))
}

// accountMounts are the binds of those files.
func (l Layout) accountMounts() []Mount {
	var mounts []Mount
	for _, name := range accountFiles {
		mounts = append(mounts, Mount{Source: l.path("aod/" + name), Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts
}
