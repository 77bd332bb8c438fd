package initbin

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// ownFile is this program on Linux, also when its file was replaced since it began.
const ownFile = "/proc/self/exe"

// ownPrefix begins the names of this program's copies.
const ownPrefix = "aod-self-"

var offered atomic.Bool

// OfferSelf says that this program is an init, and the far end of a tunnel, when it is started
// under initreport.InitPath and tunnel.Program. It is taken where no small one is embedded.
func OfferSelf() { offered.Store(true) }

// own returns this program as an init.
func own(arch string) (program, error) {
	if !offered.Load() || goruntime.GOOS != "linux" || goruntime.GOARCH != arch {
		return program{}, fault.New(fault.Unsupported,
			"this aod (%s/%s) was built without the init of sandboxes for linux/%s", goruntime.GOOS, goruntime.GOARCH,
			arch).
			WithHint("build it with `make build`, or take a release's program: both have it for every engine")
	}
	return ownFrom(ownFile)
}

// ownFrom returns the program of a file as an init. It has to be one that needs nothing of an
// image: with a loader and libraries of the image's, process 1 would be what that makes of it.
func ownFrom(path string) (program, error) {
	id, static, err := identify(path)
	if err != nil {
		return program{}, fault.Wrap(fault.Internal, err, "look at this program")
	}
	if !static {
		return program{}, fault.New(fault.Unsupported,
			"this aod was linked with this machine's C library, so it can't be the init of sandboxes").
			WithHint("install it with CGO_ENABLED=0 in the environment, build it with `make build`, or take a " +
				"release's program")
	}
	info, err := os.Stat(path)
	if err != nil {
		return program{}, fault.Wrap(fault.Internal, err, "look at this program")
	}
	return program{
		name: ownPrefix + hex.EncodeToString(id[:])[:12],
		size: info.Size(),
		read: func() ([]byte, error) { return os.ReadFile(path) },
		old:  24 * time.Hour,
	}, nil
}

// identify reads whether a program is linked statically, and what tells it from others: the Go
// linker's id, which comes of the content. Tens of megabytes aren't read for it, unless there is
// no id.
func identify(path string) (id [sha256.Size]byte, static bool, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return id, false, err
	}
	defer func() { _ = f.Close() }() // read only
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP {
			return id, false, nil
		}
	}
	var note []byte
	if section := f.Section(".note.go.buildid"); section != nil {
		if note, err = section.Data(); err != nil {
			return id, false, err
		}
	}
	const empty = 16 // bytes of a note without an id
	if len(bytes.TrimRight(note, "\x00")) <= empty {
		note, err = os.ReadFile(path)
	}
	return sha256.Sum256(note), true, err
}

// forget removes copies of other builds, which nobody has written for a time. A process that needs
// one nevertheless writes it again; sandboxes have links of their own.
func forget(dir, except string, age time.Duration) {
	copies, err := filepath.Glob(filepath.Join(dir, ownPrefix+"*"))
	if err != nil {
		return // only space is lost
	}
	for _, path := range copies {
		info, err := os.Lstat(path)
		if err == nil && path != except && time.Since(info.ModTime()) > age {
			_ = os.Remove(path) // the next one does it otherwise
		}
	}
}
