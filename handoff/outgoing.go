package handoff

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// carry opens the files of a call, or says all that is wrong with them. The caller of it
// closes what is returned, also with an error.
func (h *Handler) carry(ctx context.Context, c cargo) (files []File, err error) {
	if len(c.refs) == 0 {
		return nil, c.wrong.fault()
	}
	dir, done, err := h.outgoing(ctx, c)
	if err != nil {
		return nil, err
	}
	defer done()
	root, err := openDir(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Input, nameless(err), "the directory %s is not as it was made", contract.StageOutgoing).
			WithHint("leave the directories of /io where they are")
	}
	defer func() { _ = root.Close() }() // read only
	left := h.limits.FileBytes
	for _, ref := range c.refs {
		f, err := openFile(root, ref)
		if err == nil {
			files = append(files, f)
			left -= f.Size
		}
		switch {
		case fault.Is(err, fault.Input):
			c.wrong.add(ref.pointer, err)
		case err != nil:
			return files, err
		case left < 0:
			return files, refuse(RuleSize, fault.New(fault.TooLarge, "the files of the call have more than %d bytes together", h.limits.FileBytes).
				WithHint("hand over less in one call; whoever runs this server can raise its limit of files"))
		}
	}
	return files, c.wrong.fault()
}

func openFile(root *os.Root, ref reference) (File, error) {
	f, info, err := safefs.OpenRegular(root, ref.source)
	if err != nil {
		return File{}, unopened(ref.source, err)
	}
	return File{Name: ref.name, Open: f, Size: info.Size()}, nil
}

// unopened says whose mistake it is that a file can't be opened: an Input fault is the
// caller's.
func unopened(name string, err error) error {
	var special *safefs.Irregular
	switch {
	case errors.As(err, &special):
		return fault.New(fault.Input, "names file %s, %s", quote(name), standing(special)).
			WithHint("copy the content into a regular file in %s", contract.StageOutgoing)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault.New(fault.Input, "names file %s, which is not in %s", quote(name), contract.StageOutgoing).
			WithHint("write the file there before the call")
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Input, "names file %s, which can't be read", quote(name)).
			WithHint("check its permissions and those of its directory")
	}
	return fault.Wrap(fault.Unavailable, nameless(err), "a file of the call can't be opened").WithHint("try again later")
}

// standing says what stands in the place of a file of the call.
func standing(e *safefs.Irregular) string {
	switch {
	case e.OnTheWay:
		return "but a directory on the way is " + e.What
	case e.Changing():
		return "which is " + e.What
	}
	return "which " + e.Error()
}

// nameless takes the file's name out of an error, which may be a payload's.
func nameless(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
