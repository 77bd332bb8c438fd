package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	names "github.com/distribution/reference"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// carrier implements runtime.ImageCarrier.
type carrier struct{ *Engine }

// Save implements runtime.ImageCarrier.
func (e carrier) Save(ctx context.Context, ref string) (io.ReadCloser, error) {
	if err := checkReference(ref); err != nil {
		return nil, err
	}
	if strings.Contains(ref, "@") {
		return nil, fault.New(fault.NotFound, "an image that is named by its digest comes from a registry alone")
	}
	saved, err := e.cli.ImageSave(ctx, []string{ref})
	if err != nil {
		return nil, e.faultOf(ctx, call{"save", "image", ref}, err)
	}
	return saved, nil
}

// Load implements runtime.ImageCarrier. The engine takes nothing before it has read all.
func (e carrier) Load(ctx context.Context, ref string, from io.Reader) error {
	if err := checkReference(ref); err != nil {
		return err
	}
	piped := sendContext(func(w io.Writer) error { return passImage(ref, from, w) })
	err := e.load(ctx, piped.reader)
	if wrong := piped.close(); wrong != nil && ctx.Err() == nil {
		return wrong // the engine complains about half a tar: what matters is why it was half
	}
	if err == nil {
		_, err = e.Image(ctx, ref)
	}
	return e.faultOf(ctx, call{"load", "image", ref}, err)
}

func (e carrier) load(ctx context.Context, from io.Reader) error {
	answer, err := e.cli.ImageLoad(ctx, from, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return drainPull(answer.Body)
}

// TagImage implements runtime.ImageCarrier.
func (e carrier) TagImage(ctx context.Context, ref, as string) error {
	if err := errors.Join(checkReference(ref), checkReference(as)); err != nil {
		return err
	}
	return e.faultOf(ctx, call{"tag", "image", ref}, e.cli.ImageTag(ctx, ref, as))
}

const (
	manifestName  = "manifest.json"
	manifestLimit = 1 << 20 // bytes
)

// passImage passes a saved image on, if it is that of a reference and has no further name: an engine gives an image
// all names that the archive says. Indexes of other forms, which could say others than the manifest, are left out.
func passImage(ref string, from io.Reader, to io.Writer) error {
	archive, out, seen := tar.NewReader(from), tar.NewWriter(to), false
	for {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && !seen:
			return wrongImage(ref, "the archive has no manifest")
		case errors.Is(err, io.EOF):
			return out.Close()
		case err != nil:
			return err
		}
		name, content := path.Clean(head.Name), io.Reader(archive)
		switch {
		case name == "repositories" || name == "index.json" || name == "oci-layout":
			continue
		case path.Base(name) == manifestName:
			if seen || name != manifestName || head.Typeflag != tar.TypeReg {
				return wrongImage(ref, "the archive has another manifest")
			}
			raw, err := safefs.ReadAtMost(archive, manifestLimit)
			if err != nil {
				return err
			}
			if err := checkManifest(ref, raw); err != nil {
				return err
			}
			content, seen = bytes.NewReader(raw), true
		}
		if err := out.WriteHeader(head); err != nil {
			return fmt.Errorf("pass an image on: %w", err)
		}
		if _, err := io.Copy(out, content); err != nil {
			return err
		}
	}
}

// checkManifest returns a fault if the manifest of an archive is not that of one image with one name; an image that is
// wanted by its id has none.
func checkManifest(ref string, raw []byte) error {
	var all []struct{ RepoTags []string }
	if err := json.Unmarshal(raw, &all); err != nil {
		return wrongImage(ref, "its manifest can't be read")
	}
	if len(all) != 1 {
		return wrongImage(ref, "the archive has %d images", len(all))
	}
	tags := all[0].RepoTags
	if strings.HasPrefix(ref, "sha256:") {
		if len(tags) > 0 {
			return wrongImage(ref, "it has a name")
		}
		return nil
	}
	if len(tags) != 1 || fullName(tags[0]) != fullName(ref) {
		return wrongImage(ref, "it has another name, or several")
	}
	return nil
}

// fullName is a reference with its registry and its tag; "": it can't be read.
func fullName(ref string) string {
	named, err := names.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	return names.TagNameOnly(named).String()
}

func wrongImage(ref, why string, args ...any) error {
	return fault.New(fault.Conflict, "what came is not the image %s: %s", bounded(ref, 200), fmt.Sprintf(why, args...))
}
