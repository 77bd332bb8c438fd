package container

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Patches remember the image of each unit that is being edited. A later state of the unit
// that differs by the contents of a few files, and whose Dockerfile only copies them, runs in
// that image: the files are mounted over those that the image has.
type Patches struct {
	mu     sync.Mutex
	images map[string]builtImage // by unit
}

// builtImage is an image with the context that it was built from.
type builtImage struct {
	ref    string
	image  runtime.Image
	digest string
	files  map[string]contextFile
}

// contextFile identifies the content of one entry of a build context.
type contextFile struct {
	kind byte // of the tar package
	mode int64
	sum  [sha256.Size]byte // of a file, or of a link's target
}

// maxPatched bounds the files that are mounted one by one.
const maxPatched = 32

func (p *Patches) remember(unit string, built builtImage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.images == nil {
		p.images = map[string]builtImage{}
	}
	p.images[unit] = built
}

// forget drops the image of a unit, which the engine doesn't have any more.
func (p *Patches) forget(unit string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.images, unit)
}

// find returns the remembered image of a unit and what it lacks, or no patch.
func (p *Patches) find(
	c *capsule.Capsule, context *capsule.Context, files map[string]contextFile,
) (runtime.Image, string, *patch) {
	p.mu.Lock()
	built, known := p.images[c.Name]
	p.mu.Unlock()
	target, copies := c.CopiedTo()
	if !known || !copies || len(built.image.Volumes) > 0 {
		return runtime.Image{}, "", nil
	}
	changed, ok := changedFiles(built.files, files)
	if !ok {
		return runtime.Image{}, "", nil
	}
	return built.image, built.ref, &patch{context: context, target: target, changed: changed}
}

// changedFiles returns the names of files that are new or have another content. ok is false
// for changes that mounts can't make.
func changedFiles(before, now map[string]contextFile) (changed map[string]bool, ok bool) {
	for name := range before {
		if _, there := now[name]; !there {
			return nil, false
		}
	}
	changed = map[string]bool{}
	for name, file := range now {
		if before[name] == file {
			continue
		}
		old, there := before[name]
		if file.kind != tar.TypeReg || there && old.kind != tar.TypeReg || decidesTheBuild(name) {
			return nil, false
		}
		changed[name] = true
	}
	return changed, len(changed) <= maxPatched
}

// decidesTheBuild reports whether a file says how the image is made of the others.
func decidesTheBuild(name string) bool {
	return name == "Dockerfile" || name == ".dockerignore" || name == "Dockerfile.dockerignore"
}

// contextFiles reads a build context.
func contextFiles(context *capsule.Context) (map[string]contextFile, error) {
	files := map[string]contextFile{}
	err := context.Each(func(header *tar.Header, content io.Reader) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		sum.Write([]byte(header.Linkname))
		file := contextFile{kind: header.Typeflag, mode: header.Mode}
		sum.Sum(file.sum[:0])
		files[header.Name] = file
		return nil
	})
	return files, err
}

// patch is what an image lacks of the newest state of its unit.
type patch struct {
	context *capsule.Context
	target  string          // where the image has the files
	changed map[string]bool // by name in the context
}

// place copies the files to the attempt's directory, and returns their mounts. They are a copy
// since a mounted file shows what an editor makes of it meanwhile.
func (p *patch) place(dir string) ([]runtime.Mount, error) {
	if p == nil || len(p.changed) == 0 {
		return nil, nil
	}
	dir = filepath.Join(dir, "patch")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	var mounts []runtime.Mount
	err = p.context.Each(func(header *tar.Header, content io.Reader) error {
		if !p.changed[header.Name] {
			return nil
		}
		name := strconv.Itoa(len(mounts))
		//nolint:gosec // the tar is our own, and its names are those of a directory's files
		target := path.Join(p.target, header.Name)
		mounts = append(mounts, runtime.Mount{Source: filepath.Join(dir, name), Target: target, ReadOnly: true})
		_, err := safefs.Copy(root, name, content, header.FileInfo().Mode().Perm())
		return err
	})
	var known *fault.Error
	if err != nil && !errors.As(err, &known) {
		err = run.StorageFault(err)
	}
	return mounts, err
}
