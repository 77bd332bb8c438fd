package quota

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The commands of quotactl(2) for projects, and what goes with them: <linux/quota.h>, <linux/dqblk_xfs.h>. The general
// ones work on XFS, too.
const (
	projects     = 2 // PRJQUOTA
	getQuota     = 0x800007
	setQuota     = 0x800008
	getNextQuota = 0x800009
	getState     = 'X'<<8 + 8 // Q_XGETQSTATV

	validLimits = 1 | 4  // QIF_BLIMITS, QIF_ILIMITS
	isEnforced  = 1 << 5 // FS_QUOTA_PDQ_ENFD
)

// The attributes of files: <linux/fs.h>.
const (
	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inherit       = 0x200      // FS_XFLAG_PROJINHERIT
)

// usage is struct if_nextdqblk, which begins as struct if_dqblk. Limits count blocks of 1 KiB, space counts bytes.
type usage struct {
	blockHard, blockSoft, space  uint64
	inodeHard, inodeSoft, inodes uint64
	blockTime, inodeTime         uint64
	valid, id                    uint32
}

// state is struct fs_quota_statv, of which we read the beginning.
type state struct {
	version uint8
	_       uint8
	flags   uint16
	_       [252]byte
}

// attributeSet is struct fsxattr.
type attributeSet struct {
	flags, extent, extents, project, copyExtent uint32
	_                                           [8]byte
}

// enforced returns an error unless the file system of a directory enforces project quotas.
func enforced(dir string) error {
	s := state{version: 1}
	switch err := quotactl(dir, getState, 0, unsafe.Pointer(&s)); { //nolint:gosec // the kernel writes to it
	case errors.Is(err, unix.ENOSYS):
		return errors.New("the kernel has no quotas, or is older than 5.14")
	case errors.Is(err, unix.EPERM):
		return errors.New("this process may not ask for quotas")
	case err != nil || s.flags&isEnforced == 0:
		return errors.New("the file system isn't mounted with project quotas")
	}
	return nil
}

func (p Project) get() (got usage, err error) { return got, p.call(getQuota, &got) }

func (p Project) call(command int, with *usage) error {
	err := quotactl(p.dir, command, p.id, unsafe.Pointer(with)) //nolint:gosec // the kernel reads and writes it
	if errors.Is(err, unix.EPERM) {
		return errors.New("this process may not set quotas (CAP_SYS_ADMIN)")
	}
	return err
}

// quotactl calls quotactl_fd(2), which needs no path of a device.
func quotactl(path string, command int, id uint32, with unsafe.Pointer) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // holds no data
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), uintptr(command<<8|projects), uintptr(id), uintptr(with),
		0, 0)
	if errno != 0 {
		return fmt.Errorf("quotactl: %w", errno)
	}
	return nil
}

// open opens a file or directory of ours. It follows no link.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func attributesOf(path string) (attributeSet, error) {
	f, err := open(path)
	if err != nil {
		return attributeSet{}, err
	}
	defer func() { _ = f.Close() }() // read only
	return attributes(f)
}

func attributes(f *os.File) (attr attributeSet, err error) {
	return attr, ioctl(f, getAttributes, &attr)
}

// setProject sets a file's project, and has what is made in a directory inherit it. 0 isn't a project.
func setProject(f *os.File, id uint32) error {
	attr, err := attributes(f)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	attr.project = id
	attr.flags &^= inherit
	if id != 0 && info.IsDir() {
		attr.flags |= inherit
	}
	return ioctl(f, setAttributes, &attr)
}

func ioctl(f *os.File, request uintptr, attr *attributeSet) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request,
		uintptr(unsafe.Pointer(attr))); errno != 0 { //nolint:gosec // the kernel reads and writes it
		return fmt.Errorf("attributes of a file: %w", errno)
	}
	return nil
}
