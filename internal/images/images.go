// Package images carries the base image's build context: its Dockerfile and the Python package of package sdk. It
// writes the context and names the image by its content; building it is the runtime's work.
//
// It must not know engines.
package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/sdk"
)

// BaseName is the name that capsules write behind FROM.
const BaseName = "aod/base"

// BaseLatest is the reference that BaseName stands for.
const BaseLatest = BaseName + ":latest"

// BaseFrom is the image that the base image itself stands on.
const BaseFrom = "debian:trixie-slim"

// BasePython is the version of the base image's Python, that of its Debian.
var BasePython = [2]int{3, 13}

// tagDigits is how much of the digest goes into a tag: enough that two contexts
// never meet, short enough to read.
const tagDigits = 16

//go:embed base/Dockerfile
var baseDockerfile []byte

// BaseTag returns the name and tag of the base image with this very content.
func BaseTag() string { return BaseName + ":" + BaseDigest()[:tagDigits] }

// BaseDigest returns the SHA-256 of the base image's build context, in hex.
func BaseDigest() string { return baseDigest() }

var baseDigest = sync.OnceValue(func() string {
	context, err := baseContext()
	if err != nil {
		panic("images: " + err.Error()) // embedded files into memory can't fail
	}
	sum := sha256.Sum256(context)
	return hex.EncodeToString(sum[:])
})

// WriteBaseContext writes the base image's build context as a tar, which is the
// same bytes every time. It fails only where w does.
func WriteBaseContext(w io.Writer) error {
	context, err := baseContext()
	if err != nil {
		return err
	}
	if _, err := w.Write(context); err != nil {
		return fmt.Errorf("write the base image's context: %w", err)
	}
	return nil
}

func baseContext() ([]byte, error) {
	var buf bytes.Buffer
	archive := tar.NewWriter(&buf)
	if err := addFile(archive, "Dockerfile", baseDockerfile); err != nil {
		return nil, err
	}
	if err := addPackage(archive, sdk.Python()); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("close the base image's context: %w", err)
	}
	return buf.Bytes(), nil
}

func addPackage(archive *tar.Writer, files fs.FS) error {
	names, err := fs.Glob(files, "*.py") // sorted, since fs.ReadDir is
	if err != nil {
		return fmt.Errorf("list the Python package: %w", err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := addFile(archive, "aod/"+name, content); err != nil {
			return err
		}
	}
	return nil
}

func addFile(archive *tar.Writer, name string, content []byte) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Mode:     0o644,
		Size:     int64(len(content)),
		ModTime:  time.Unix(0, 0),
		Format:   tar.FormatUSTAR,
	}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("add %s to the base image's context: %w", name, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("add %s to the base image's context: %w", name, err)
	}
	return nil
}
