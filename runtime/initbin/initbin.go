package initbin

import (
	"embed"
	"errors"
	"io/fs"
	"slices"

	"github.com/agent-on-demand/aod/fault"
)

//go:embed all:bin
var embedded embed.FS

var architectures = []string{"amd64", "arm64"}

// Binary returns the init program for a Linux architecture ("amd64" or "arm64", Go's
// words). The error is Unsupported for any other, and Internal when this program was
// built without it.
func Binary(arch string) ([]byte, error) { return binaryFrom(embedded, "aod-init", arch) }

// Tunnel returns the program at the far end of a tunnel.Listener (cmd/aod-line). The errors
// are those of Binary.
func Tunnel(arch string) ([]byte, error) { return binaryFrom(embedded, "aod-line", arch) }

func binaryFrom(files fs.FS, program, arch string) ([]byte, error) {
	if !slices.Contains(architectures, arch) {
		return nil, fault.New(fault.Unsupported, "nothing can run in a sandbox of the architecture %q", arch).
			WithHint("use an engine on amd64 or arm64")
	}
	raw, err := fs.ReadFile(files, "bin/"+program+"-linux-"+arch)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0:
		return nil, fault.New(fault.Internal, "this aod was built without its %s for %s", program, arch).
			WithHint("run make build")
	case err != nil:
		return nil, fault.Wrap(fault.Internal, err, "read the embedded %s", program)
	}
	return raw, nil
}
