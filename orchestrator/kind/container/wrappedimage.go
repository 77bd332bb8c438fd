package container

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
)

// namedImage returns the image that a directory of a wrapped agent names; "": it has a
// Dockerfile.
func namedImage(c *capsule.Capsule) string {
	if c.Wrapped == nil {
		return ""
	}
	return c.Wrapped.Image
}

// isImageID reports whether a reference is the id of an image of this engine. BuildKit takes it
// for a name.
func isImageID(image string) bool { return strings.HasPrefix(image, "sha256:") }

// writeFrom writes a build context that makes an image of ours of one that there is. The tag
// has the digest of the unit's directory, so that a version of a unit stays with the image that
// it began with, whatever becomes of the reference.
func writeFrom(w io.Writer, image string) error {
	dockerfile := []byte("FROM " + image + "\n")
	t := tar.NewWriter(w)
	err := t.WriteHeader(&tar.Header{
		Name: "Dockerfile", Typeflag: tar.TypeReg, Mode: 0o644,
		Size: int64(len(dockerfile)), ModTime: time.Unix(0, 0),
	})
	if err == nil {
		_, err = t.Write(dockerfile)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return fault.Wrap(fault.Internal, err, "the build context could not be sent")
	}
	return nil
}
