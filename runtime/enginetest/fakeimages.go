package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// AddImage gives the fake an image; without an ID it gets one.
func (f *Fake) AddImage(img runtime.Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addImage(img)
}

func (f *Fake) addImage(img runtime.Image) string {
	if img.ID == "" {
		img.ID = "sha256:" + f.newID()
	}
	for _, other := range f.images { // a tag moves to the newest
		other.Tags = slices.DeleteFunc(other.Tags, func(tag string) bool { return slices.Contains(img.Tags, tag) })
	}
	f.images = slices.DeleteFunc(f.images, func(i *runtime.Image) bool { return i.ID == img.ID })
	f.images = append(f.images, &img)
	return img.ID
}

func (f *Fake) find(ref string) *runtime.Image {
	for _, img := range f.images {
		if img.ID == ref || slices.Contains(img.Tags, ref) || slices.Contains(img.Tags, ref+":latest") {
			return img
		}
	}
	return nil
}

// Image returns an image by tag or id.
func (f *Fake) Image(ctx context.Context, ref string) (runtime.Image, error) {
	if err := f.call(ctx, "Image"); err != nil {
		return runtime.Image{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if img := f.find(ref); img != nil {
		return *img, f.lost("Image", nil)
	}
	return runtime.Image{}, fault.New(fault.NotFound, "the engine has no image %s", ref)
}

// Pull finds no registry.
func (f *Fake) Pull(ctx context.Context, ref string) error {
	if err := f.call(ctx, "Pull"); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "no registry could be reached for image %s", ref)
}

// Save implements runtime.ImageCarrier: the image's description, and a layer of its size.
func (f *Fake) Save(ctx context.Context, ref string) (io.ReadCloser, error) {
	if err := f.call(ctx, "Save"); err != nil {
		return nil, err
	}
	img, err := f.Image(ctx, ref)
	if err != nil {
		return nil, err
	}
	described, err := json.Marshal(img)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	archive := tar.NewWriter(&all)
	for name, content := range map[string][]byte{"layer": make([]byte, img.SizeBytes), ref: described} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&all), archive.Close()
}

// Load implements runtime.ImageCarrier.
func (f *Fake) Load(ctx context.Context, ref string, from io.Reader) error {
	if err := f.call(ctx, "Load"); err != nil {
		return err
	}
	var img *runtime.Image
	for archive := tar.NewReader(from); ; {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && img == nil:
			return fault.New(fault.Conflict, "what came is not the image %s", ref)
		case errors.Is(err, io.EOF):
			img.Tags = []string{ref}
			f.AddImage(*img)
			return nil
		case err != nil:
			return err
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if head.Name == ref {
			img = &runtime.Image{}
			if err := json.Unmarshal(raw, img); err != nil {
				return err
			}
		}
	}
}

// TagImage implements runtime.ImageCarrier.
func (f *Fake) TagImage(ctx context.Context, ref, as string) error {
	img, err := f.Image(ctx, ref)
	if err != nil {
		return err
	}
	img.Tags = append(slices.Clone(img.Tags), as)
	f.AddImage(img)
	return nil
}

// RemoveImage removes a tag, and the image with its last one.
func (f *Fake) RemoveImage(ctx context.Context, ref string) error {
	if err := f.call(ctx, "RemoveImage"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	img := f.find(ref)
	if img == nil {
		return nil
	}
	img.Tags = slices.DeleteFunc(slices.Clone(img.Tags), func(tag string) bool { return tag == ref || tag == ref+":latest" })
	if len(img.Tags) == 0 || img.ID == ref {
		f.images = slices.DeleteFunc(f.images, func(i *runtime.Image) bool { return i == img })
	}
	return nil
}

// ImagesByLabel lists the images that carry all the labels.
func (f *Fake) ImagesByLabel(ctx context.Context, labels map[string]string) ([]runtime.Image, error) {
	if err := f.call(ctx, "ImagesByLabel"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var images []runtime.Image
	for _, img := range f.images {
		if carries(img.Labels, labels) {
			images = append(images, runtime.Image{ID: img.ID, Tags: img.Tags, Labels: img.Labels, SizeBytes: img.SizeBytes})
		}
	}
	return images, nil
}

// Build reads the Dockerfile of the context, wants its base image, and hands each RUN
// to RunStep. Instructions that were built before count as cached.
func (f *Fake) Build(ctx context.Context, spec runtime.BuildSpec, progress func(runtime.BuildEvent)) (string, error) {
	if err := f.call(ctx, "Build"); err != nil {
		return "", err
	}
	content, instructions, err := readContext(spec)
	if err != nil {
		return "", err
	}
	base := runtime.Image{OS: f.Info.OS, Arch: f.Info.Arch}
	for i, instruction := range instructions {
		step := fakeStep{
			id: fmt.Sprint(i + 1), name: fmt.Sprintf("[%d/%d] %s", i+1, len(instructions), instruction), progress: progress,
		}
		if from, ok := strings.CutPrefix(instruction, "FROM "); ok {
			f.mu.Lock()
			found := f.find(strings.TrimSpace(from))
			f.mu.Unlock()
			if found == nil {
				step.emit(runtime.StepFailed, "")
				return "", fault.Wrap(fault.Build, runtime.ErrNoBase, "the base image %s is not on the engine and no registry could be reached for it", from).
					WithHint("build or load %s on this engine first", from)
			}
			base = *found
		}
		if err := f.buildStep(ctx, step, instruction, content, spec.NoCache); err != nil {
			return "", err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	base.ID, base.Tags, base.Labels = fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(content, spec.Labels))), slices.Clone(spec.Tags), maps.Clone(spec.Labels)
	return f.addImage(base), f.lost("Build", nil)
}

func (f *Fake) buildStep(ctx context.Context, step fakeStep, instruction string, content []byte, noCache bool) error {
	f.mu.Lock()
	key := instruction + string(content)
	cached := f.built[key] && !noCache
	f.mu.Unlock()
	if cached {
		step.emit(runtime.StepCached, "")
		return nil
	}
	step.emit(runtime.StepStarted, "")
	if command, ok := strings.CutPrefix(instruction, "RUN "); ok && f.RunStep != nil {
		var output bytes.Buffer
		code := f.RunStep(ctx, command, &output)
		text := strings.TrimSuffix(output.String(), "\n")
		for line := range strings.SplitSeq(text, "\n") {
			step.emit(runtime.StepLog, line)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("build: %w", ctx.Err())
		}
		if code != 0 {
			step.emit(runtime.StepFailed, "")
			return fault.New(fault.Build, "the build failed in step %s: exit code %d\n%s", step.name, code, text)
		}
	}
	step.emit(runtime.StepDone, "")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.built[key] = true
	return nil
}

type fakeStep struct {
	id, name string
	progress func(runtime.BuildEvent)
}

func (s fakeStep) emit(state runtime.StepState, line string) {
	if s.progress != nil {
		s.progress(runtime.BuildEvent{Step: s.id, Name: s.name, State: state, Log: line})
	}
}

// readContext returns the whole tar and the instructions of its Dockerfile.
func readContext(spec runtime.BuildSpec) (content []byte, instructions []string, err error) {
	var buf bytes.Buffer
	if err := spec.WriteContext(&buf); err != nil {
		return nil, nil, fmt.Errorf("build context: %w", err)
	}
	name := spec.Dockerfile
	if name == "" {
		name = "Dockerfile"
	}
	content = buf.Bytes()
	for files := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil, fault.New(fault.Build, "the build failed: there is no such Dockerfile in the build context")
		}
		if err != nil {
			return nil, nil, fault.Wrap(fault.Build, err, "the build context isn't a tar")
		}
		if path.Clean(header.Name) != name {
			continue
		}
		text, err := io.ReadAll(files)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				instructions = append(instructions, line)
			}
		}
		return content, instructions, err
	}
}
