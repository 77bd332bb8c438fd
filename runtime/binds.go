package runtime

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// binds are the directories and files of this host that a sandbox has.
type binds struct {
	layout Layout
	spec   Spec
}

// into gives a container the run's directories. The image declares the volumes.
func (b binds) into(container *ContainerSpec, volumes []string) {
	switch {
	case b.layout.remote != nil:
		b.layout.remote.mountIn(container)
	case b.spec.Filter != nil:
		container.Mounts = b.ofFilter()
	default:
		container.Mounts = b.all(volumes)
	}
	container.Mounts = append(append(container.Mounts, b.ofSession()...), b.spec.Patch...)
}

// ofSession are the binds of what a session has beside those of every sandbox.
func (b binds) ofSession() (mounts []Mount) {
	if b.spec.Mode == ModeSession {
		mounts = append(mounts,
			Mount{Source: b.layout.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)})
	}
	if b.layout.Home != "" {
		mounts = append(mounts, Mount{Source: b.layout.Home, Target: HomePath})
	}
	if b.layout.Kept != "" {
		mounts = append(mounts, Mount{Source: b.layout.Kept, Target: ProjectDir})
	}
	return mounts
}

// ofFilter are the binds of a filter's sandbox: it reads its input and writes its stdout.
func (b binds) ofFilter() []Mount {
	mounts := []Mount{
		{Source: b.layout.input(), Target: inputDir, ReadOnly: true},
		{Source: b.layout.path("aod"), Target: aodDir, ReadOnly: true},
		{Source: b.layout.path("aod/report"), Target: reportPath},
		{Source: b.layout.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)},
	}
	if b.spec.Filter.Model != nil {
		mounts = append(mounts, *b.spec.Filter.Model)
	}
	if b.spec.Network == "none" {
		mounts = append(mounts, Mount{Source: b.layout.path("aod/hosts"), Target: "/etc/hosts", ReadOnly: true})
	}
	return mounts
}

// all are the binds of a sandbox. The read-only ones lie over the writable ones, so that
// their order matters. A directory of /io that the image declares as a volume gets a bind of
// its own: otherwise the engine would cover it with a volume that nobody collects. With our
// own hosts file the engine sets up no network for "none", which halves the time of a start.
func (b binds) all(volumes []string) []Mount {
	mounts := []Mount{{Source: b.layout.path("io"), Target: ioDir}}
	for _, dir := range []string{"/io/output", "/io/handoff"} {
		if slices.Contains(volumes, dir) {
			mounts = append(mounts, Mount{Source: b.layout.path(dir), Target: dir})
		}
	}
	mounts = append(
		mounts,
		Mount{Source: b.layout.input(), Target: inputDir, ReadOnly: true},
		Mount{Source: b.layout.Incoming(), Target: incomingDir, ReadOnly: true},
		Mount{Source: b.layout.Outgoing(), Target: outgoingDir},
		Mount{Source: b.layout.path("workspace"), Target: workspaceDir},
		Mount{Source: b.layout.path("aod"), Target: aodDir, ReadOnly: true},
		Mount{Source: b.layout.path("aod/report"), Target: reportPath},
	)
	if b.spec.Stdio != nil {
		mounts = append(mounts,
			Mount{Source: b.layout.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)})
	}
	if b.spec.Project != "" {
		mounts = append(mounts, Mount{Source: b.spec.Project, Target: ProjectDir, ReadOnly: true})
	}
	if b.spec.Account {
		mounts = append(mounts, b.ofAccount()...)
	}
	if b.spec.Network == "none" {
		mounts = append(mounts, Mount{Source: b.layout.path("aod/hosts"), Target: "/etc/hosts", ReadOnly: true})
	}
	return mounts
}

// accountFiles are the files below aodDir that the sandbox has in its /etc.
var accountFiles = []string{"passwd", "group"}

// writeAccount writes the files in which programs look for the name and the home of the
// sandbox's user: without them ssh, git and many a runtime refuse to start.
func (b binds) writeAccount() error {
	if !b.spec.Account {
		return nil
	}
	uid, gid, _ := strings.Cut(sandboxUser(b.spec.UID), ":")
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nagent:x:%s:%s:agent:%s:/bin/sh\n", uid, gid,
		b.spec.home(b.layout))
	group := fmt.Sprintf("root:x:0:\nagent:x:%s:\n", gid)
	return unwritable(errors.Join(
		writeFile(b.layout.path("aod/passwd"), []byte(passwd), 0o644),
		writeFile(b.layout.path("aod/group"), []byte(group), 0o644),
	))
}

// ofAccount are the binds of those files.
func (b binds) ofAccount() []Mount {
	var mounts []Mount
	for _, name := range accountFiles {
		mounts = append(mounts, Mount{Source: b.layout.path("aod/" + name), Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts
}
