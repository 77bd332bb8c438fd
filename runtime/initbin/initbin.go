package initbin

import (
	"embed"
	"errors"
	"io/fs"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
)

//go:embed all:bin
var embedded embed.FS

var architectures = []string{"amd64", "arm64"}

// Check reports whether this program itself would be the init for a Linux architecture ("amd64"
// or "arm64", Go's words), as none is embedded. The error is Unsupported where there is no init
// for it at all, and says what to do.
func Check(arch string) (self bool, err error) {
	raw, err := embeddedIn(embedded, "aod-init", arch)
	if err != nil || raw != nil {
		return false, err
	}
	_, err = own(arch)
	return err == nil, err
}

// Tunnel returns the program at the far end of a tunnel.Listener (cmd/aod-line); nil where the
// init is that program as well. The errors are those of Check.
func Tunnel(arch string) ([]byte, error) {
	raw, err := embeddedIn(embedded, "aod-line", arch)
	if err == nil && raw == nil {
		_, err = own(arch)
	}
	return raw, err
}

// embeddedIn returns a program for an architecture; nil where this program was built without.
func embeddedIn(files fs.FS, program, arch string) ([]byte, error) {
	if !slices.Contains(architectures, arch) {
		return nil, fault.New(fault.Unsupported, "nothing can run in a sandbox of the architecture %q", arch).
			WithHint("use an engine on amd64 or arm64")
	}
	raw, err := fs.ReadFile(files, "bin/"+program+"-linux-"+arch)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0:
		return nil, nil
	case err != nil:
		return nil, fault.Wrap(fault.Internal, err, "read the embedded %s", program)
	}
	return raw, nil
}
