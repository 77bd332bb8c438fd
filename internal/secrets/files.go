package secrets

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// maxSecret bounds a secret in bytes.
const maxSecret = 64 << 10

// Files reads the secrets that units and settings name and the operator keeps in files. Each
// use reads the file, so that a new secret is in force at once.
type Files struct {
	Dir   string            // a file a secret; "" is none
	Named map[string]string // paths of single ones, by name: they go before those of Dir
}

// Read returns a secret. No error has a part of the value. It is a Forbidden fault for a file
// that others can read, NotFound for a missing file, else Input.
func (s Files) Read(name string) (Secret, error) {
	file, info, err := s.open(name)
	var special *safefs.Irregular
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.New(fault.NotFound, "there is no secret %q", name).
			WithHint("`aod secret set %s` keeps it: a file of mode 600 in the directory of the setting `secrets`; "+
				"see --secret of aod run, too", name)
	case errors.As(err, &special):
		return "", fault.New(fault.Input, "the secret %q isn't a regular file", name).
			WithHint("put the value itself into a file")
	case err != nil:
		return "", fault.Wrap(fault.Unavailable, err, "the secret %q can't be read", name).
			WithHint("make its file readable for the user that runs aod")
	}
	defer file.Close()
	value, err := readSecret(name, file, info)
	return Secret(value), err
}

// open opens the file of a secret. It doesn't block on a pipe.
func (s Files) open(name string) (*os.File, fs.FileInfo, error) {
	if path, given := s.Named[name]; given {
		return safefs.OpenNamed(path)
	}
	if s.Dir == "" {
		return nil, nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	return safefs.OpenInside(root, name)
}

func readSecret(name string, file io.Reader, info fs.FileInfo) ([]byte, error) {
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Forbidden, "others can read the secret %q: its file has the mode %04o", name,
			info.Mode().Perm()).
			WithHint("chmod 600 on its file, and if others had it meanwhile, make a new one")
	}
	return valueOf(name, file)
}

// valueOf reads the value of a secret, without a line end after it.
func valueOf(name string, from io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, maxSecret+1))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the secret %q can't be read", name)
	}
	if len(raw) > maxSecret {
		return nil, fault.New(fault.Input, "the secret %q has more than %d bytes", name, maxSecret).
			WithHint("is it the right file?")
	}
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(raw) == 0 {
		return nil, fault.New(fault.Input, "the secret %q is empty", name).WithHint("put the value into its file")
	}
	return raw, nil
}

// Secret is a text that only the other side of a call may see: printed, logged or written as JSON it is
// "[secret]".
type Secret string

const hidden = "[secret]"

func (s Secret) String() string { return hidden }

// GoString is for %#v.
func (s Secret) GoString() string { return hidden }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText is for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
