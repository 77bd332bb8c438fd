package handoff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// outgoing is where a caller has the files that it hands over.
type outgoing struct {
	dir      string       // "": the caller gives files that are open
	transfer FileTransfer // nil: the caller sees this very directory
	maxFiles int          // of one call
	maxBytes int64        // of all of them together
}

// open opens the files of a call, or says all that is wrong with them. Whoever calls it
// closes the files that it returns, also after an error.
func (o outgoing) open(ctx context.Context, a attachments) (files []File, err error) {
	root, leave, err := o.root(ctx, a)
	if err != nil {
		return nil, err
	}
	defer leave()
	left := o.maxBytes
	for _, ref := range a.refs {
		if ref.maybe && isAbsent(root, ref.source) {
			continue
		}
		f, err := openAttachment(root, ref)
		if err == nil {
			files = append(files, f)
			left -= f.Size
		}
		switch {
		case fault.Is(err, fault.Input):
			a.wrong.add(ref.pointer, err)
		case err != nil:
			return files, err
		case left < 0:
			return files, refuse(RuleSize,
				fault.New(fault.TooLarge, "the files of the call have more than %d bytes together", o.maxBytes).
					WithHint("hand over less in one call; whoever runs this server can raise its limit of files"))
		}
	}
	return files, a.wrong.fault()
}

// root opens the directory that has the files which were not given. leave closes it. The
// directory is nil if no file needs it, or if the caller has none.
func (o outgoing) root(ctx context.Context, a attachments) (root *os.Root, leave func(), err error) {
	names := a.sources()
	if len(names) == 0 || o.dir == "" {
		return nil, func() {}, nil
	}
	return o.openStage(ctx, contract.StageOutgoing, o.dir, names...)
}

// openStage opens a directory that the caller writes to. Where the caller is elsewhere, it has the files of some names
// alone. leave closes it.
func (o outgoing) openStage(
	ctx context.Context, at contract.Stage, dir string, names ...string,
) (root *os.Root, leave func(), err error) {
	done := func() {}
	if o.transfer != nil {
		if dir, done, err = o.transfer.Fetch(ctx, string(at), names, o.maxBytes); err != nil {
			return nil, nil, err
		}
	}
	if root, err = openDir(dir); err != nil {
		done()
		return nil, nil, fault.Wrap(fault.Input, withoutName(err), "the directory %s is not as it was made", at).
			WithHint("leave the directories of /io where they are")
	}
	return root, func() { _ = root.Close(); done() }, nil // read only
}

// isAbsent reports whether there is nothing of the name in outgoing.
func isAbsent(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return isMissing(err)
}

// openAttachment returns the file that was given, or opens the one in outgoing.
func openAttachment(root *os.Root, ref reference) (File, error) {
	switch {
	case ref.given != nil:
		return givenFile(ref)
	case root == nil:
		return File{}, fault.New(fault.Input, "names file %s, which was not given with the call", quote(ref.name)).
			WithHint("the caller has no directory of files: open the file and give it")
	}
	return openFile(root, ref.source, ref.name, stage{contract.StageOutgoing, "copy", "before the call", "call"})
}

func givenFile(ref reference) (File, error) {
	info, err := ref.given.Stat()
	if err != nil {
		return File{}, fmt.Errorf("a file that was given: %w", withoutName(err))
	}
	if !info.Mode().IsRegular() {
		return File{}, fault.New(fault.Input, "names file %s, which is %s, not a regular file", quote(ref.name),
			safefs.Describe(info.Mode())).
			WithHint("give a regular file with the same content")
	}
	return File{Name: ref.name, Open: ref.given, Size: info.Size(), given: true}, nil
}

// hint says how the caller hands over files.
func (o outgoing) hint() string {
	if o.dir == "" {
		return "give each file with the call, opened, under the name that the arguments have for it"
	}
	return fmt.Sprintf("write each file to %s before the call, and name it relative to there", contract.StageOutgoing)
}

// stage is a directory of the caller's with files that it hands over, in the words of messages.
type stage struct {
	dir        contract.Stage
	copy, when string // how and when a file gets there
	of         string // what its files belong to
}

// openFile opens a file in a directory of the caller's. The error is an Input fault where the
// caller made the mistake.
func openFile(root *os.Root, source, name string, s stage) (File, error) {
	f, info, err := safefs.OpenRegular(root, source)
	var special *safefs.Irregular
	switch {
	case err == nil:
		return File{Name: name, Open: f, Size: info.Size()}, nil
	case errors.As(err, &special):
		return File{}, fault.New(fault.Input, "names file %s, %s", quote(source), describe(special)).
			WithHint("%s the content into a regular file in %s", s.copy, s.dir)
	case isMissing(err):
		return File{}, fault.New(fault.Input, "names file %s, which is not in %s", quote(source), s.dir).
			WithHint("write the file there %s", s.when)
	case errors.Is(err, fs.ErrPermission):
		return File{}, fault.New(fault.Input, "names file %s, which can't be read", quote(source)).
			WithHint("check its permissions and those of its directory")
	}
	return File{}, fault.Wrap(fault.Unavailable, withoutName(err), "a file of the %s can't be opened", s.of).
		WithHint("try again later")
}

// describe says what is in the place of a file of the call.
func describe(e *safefs.Irregular) string {
	switch {
	case e.OnTheWay:
		return "but a directory on the way is " + e.What
	case e.Changing():
		return "which is " + e.What
	}
	return "which " + e.Error()
}

// withoutName takes the name of a file out of an error: it may come from a payload.
func withoutName(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
