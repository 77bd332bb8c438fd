package worker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// carrier brings the files of an attempt here, and to the server.
type carrier struct{ *held }

// fetchInputs brings the input files that aren't here yet.
func (c carrier) fetchInputs(ctx context.Context, a wire.Assignment) error {
	dir := c.run.InputDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return run.StorageFault(err)
	}
	for _, file := range a.Files {
		name, err := contract.CleanName(file.Name, contract.StageInput)
		if err != nil {
			return fault.Wrap(fault.Input, err, "an input file can't have its name")
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Lstat(to); err == nil && info.Size() == file.SizeBytes {
			continue
		}
		if err := c.bring(ctx, leasePath(a.Lease, wire.Input, namePath(name)), to, file.SizeBytes); err != nil {
			return err
		}
	}
	return nil
}

// bring fetches a file, and goes on where an earlier try broke off. It has its name when it is whole; a size below 0
// isn't known.
func (c carrier) bring(ctx context.Context, path, to string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return run.StorageFault(err)
	}
	part := filepath.Join(filepath.Dir(to), safefs.TempPrefix+filepath.Base(to))
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return run.StorageFault(err)
	}
	err = c.worker.link.goOn(ctx, "fetch a file", func() (bool, error) { return c.append(ctx, path, file) })
	info, stat := file.Stat()
	if err = errors.Join(err, stat, file.Close()); err != nil {
		return err
	}
	if size >= 0 && info.Size() != size {
		return errors.Join(fault.New(fault.Unavailable, "a file broke off, or is another one"), os.Remove(part))
	}
	return run.StorageFault(os.Rename(part, to))
}

// append appends what a file lacks, and reports whether some of it has come.
func (c carrier) append(ctx context.Context, path string, file *os.File) (moved bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return false, run.StorageFault(err)
	}
	r, err := c.worker.link.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	if info.Size() > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", info.Size()))
	}
	response, err := c.worker.link.do(c.worker.link.files, r)
	if errors.Is(err, errWhole) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode != http.StatusPartialContent {
		if err := file.Truncate(0); err != nil {
			return false, run.StorageFault(err)
		}
	}
	source := &run.Source{Reader: response.Body}
	n, err := io.Copy(file, source)
	if err != nil && source.Err == nil { // no connection broke: the disk is full
		return n > 0, run.StorageFault(err)
	}
	return n > 0, lostIf(source.Err)
}

// fetchProject brings the project of the run, if it has one.
func (c carrier) fetchProject(ctx context.Context) error {
	r := c.run
	if _, err := os.Lstat(r.ManifestFile()); err == nil || !r.Project {
		return nil
	}
	return c.unpack(ctx, wire.Project, func(from io.Reader) error {
		if err := errors.Join(safefs.RemoveTree(r.BaseDir()), os.MkdirAll(r.BaseDir(), 0o755)); err != nil {
			return run.StorageFault(err)
		}
		manifest, err := workspace.Unpack(r.BaseDir(), from, workspace.Options{
			Limits: workspace.Limits{Bytes: math.MaxInt64, Files: math.MaxInt32}, // the server has bounded it
		})
		if err != nil {
			return err
		}
		return run.StorageFault(manifest.Save(r.ManifestFile()))
	})
}

// sendChanges brings what the attempt made of its project to the server.
func (c carrier) sendChanges(ctx context.Context) error {
	return c.stream(ctx, leasePath(c.lease(), wire.Changes), func(w io.Writer) error {
		root, err := os.OpenRoot(c.run.ChangesDir())
		if err != nil {
			return run.StorageFault(err)
		}
		defer func() { _ = root.Close() }() // read only
		out := tar.NewWriter(w)
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = packFile(out, root, name, math.MaxInt64)
			}
			return err
		})
		return errors.Join(err, out.Close())
	})
}

// send brings the output files to the server, in parts, each from where the server has it.
func (c carrier) send(ctx context.Context, files []api.File) error {
	for _, file := range files {
		if err := c.sendFile(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

func (c carrier) sendFile(ctx context.Context, file api.File) error {
	content, _, err := safefs.OpenNamed(filepath.Join(c.run.OutputDir(), filepath.FromSlash(file.Name)))
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = content.Close() }() // read only
	at, seen := leasePath(c.lease(), wire.Output, namePath(file.Name)), int64(0)
	return c.worker.link.goOn(ctx, "send a file", func() (moved bool, err error) {
		has, err := c.sizeAt(ctx, at)
		moved, seen = has > seen, max(has, seen)
		for begun := false; err == nil && (has < file.SizeBytes || !begun && file.SizeBytes == 0); begun = true {
			has, err = c.sendPart(ctx, at, content, has, file.SizeBytes)
		}
		return moved, err
	})
}

// sizeAt returns how many bytes of a file the server has.
func (c carrier) sizeAt(ctx context.Context, at string) (int64, error) {
	r, err := c.worker.link.request(ctx, http.MethodHead, at, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.worker.link.do(c.worker.link.files, r)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close() // there is none
	return strconv.ParseInt(response.Header.Get(wire.HeaderSize), 10, 64)
}

// sendPart sends the next part of a file, and returns how many bytes the server has then.
func (c carrier) sendPart(ctx context.Context, at string, file *os.File, has, size int64) (int64, error) {
	part := io.NewSectionReader(file, has, min(size-has, wire.MaxPart))
	r, err := c.worker.link.request(ctx, http.MethodPut, at+"?offset="+strconv.FormatInt(has, 10), part)
	if err != nil {
		return has, err
	}
	r.ContentLength = part.Size()
	if part.Size() == 0 {
		r.Body = http.NoBody
	}
	response, err := c.worker.link.do(c.worker.link.files, r)
	if fault.Is(err, fault.Conflict) {
		return has, fault.Wrap(fault.Unavailable, err, "the server has another part of the file")
	}
	if err != nil {
		return has, err
	}
	_ = response.Body.Close() // it says no more
	return strconv.ParseInt(response.Header.Get(wire.HeaderSize), 10, 64)
}

// transfer does what the server wants with files of a handoff, beside all else. It may be asked for again.
func (c carrier) transfer(order wire.Transfer) {
	c.worker.underway.Go(func() {
		err := c.worker.link.repeat(c.life, "transfer", func() error {
			if order.Incoming {
				return c.bringIncoming(c.life, order)
			}
			return c.sendOutgoing(c.life, order)
		})
		if c.life.Err() != nil || errors.Is(err, errVoid) || err == nil && !order.Incoming {
			return
		}
		var answer wire.Transferred
		if err != nil {
			answer.Error = fault.Public(err).Msg
			c.worker.logger.Warn("files of a handoff not carried", "run", c.runID(), fault.LogAttr(err))
		}
		// an error is the end of the attempt, or of what wanted the files
		_ = c.worker.link.repeat(c.life, "transferred", func() error {
			return c.worker.link.call(c.life, leasePath(order.Lease, wire.Transfers, order.ID), answer, nil)
		})
	})
}

// layout is that of the attempt's sandbox.
func (c carrier) layout() runtime.Layout {
	if live, talks := c.liveLayout(); talks {
		return live
	}
	return runtime.OpenLayout(c.run.AttemptDir(), "")
}

// bringIncoming fetches files that callees returned.
func (c carrier) bringIncoming(ctx context.Context, order wire.Transfer) error {
	for _, name := range order.Names {
		clean, err := contract.CleanName(name, contract.StageIncoming)
		if err != nil {
			return fault.Wrap(fault.Input, err, "a file of a callee can't have its name")
		}
		to := filepath.Join(c.layout().Incoming(), filepath.FromSlash(clean))
		if _, err := os.Lstat(to); err == nil {
			continue // it came before
		}
		if err := c.bring(ctx, leasePath(order.Lease, wire.Incoming, namePath(clean)), to, -1); err != nil {
			return err
		}
	}
	return nil
}

// sendOutgoing sends files that the program hands over.
func (c carrier) sendOutgoing(ctx context.Context, order wire.Transfer) error {
	return c.stream(ctx, leasePath(order.Lease, wire.Transfers, order.ID),
		func(w io.Writer) error { return c.pack(w, order) })
}

// stream sends what is packed to an address.
func (c carrier) stream(ctx context.Context, to string, pack func(w io.Writer) error) error {
	reader, writer := io.Pipe()
	var packed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		packed = pack(writer)
		_ = writer.CloseWithError(packed) // never fails
	}()
	r, err := c.worker.link.request(ctx, http.MethodPut, to, reader)
	if err == nil {
		var response *http.Response
		if response, err = c.worker.link.do(c.worker.link.files, r); err == nil {
			_ = response.Body.Close() // it says no more
		}
	}
	_ = reader.Close() // ends a writer that wasn't read to its end
	<-done
	if packed != nil && !errors.Is(packed, io.ErrClosedPipe) {
		return packed
	}
	return err
}

// pack writes files of a directory that programs write to. What is missing is left out; what isn't a regular file is a
// directory, and what is too large has its size alone.
func (c carrier) pack(w io.Writer, order wire.Transfer) error {
	root, err := c.openWritten(order.From)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // read only
	out, most := tar.NewWriter(w), order.MaxBytes
	for _, name := range order.Names {
		if most, err = packFile(out, root, name, most); err != nil {
			return err
		}
	}
	return out.Close()
}

// openWritten opens a directory that the program writes to, by its address in the sandbox. It follows no link: the
// program may have put one in its place.
func (c carrier) openWritten(from string) (*os.Root, error) {
	at := c.layout().Outgoing()
	if from == string(contract.StageOutput) {
		at = c.layout().WrittenOutput()
	}
	name, err := filepath.Rel(c.layout().Dir, at)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.layout().Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	return safefs.Descend(root, filepath.ToSlash(name))
}

func packFile(out *tar.Writer, root *os.Root, name string, left int64) (int64, error) {
	file, info, err := safefs.OpenRegular(root, name)
	if err != nil {
		if _, gone := root.Lstat(name); errors.Is(gone, fs.ErrNotExist) {
			return left, nil
		}
		return left, out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Clean(name), Mode: 0o700})
	}
	defer func() { _ = file.Close() }() // read only
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: info.Size()}
	if info.Size() > left {
		head.Size, head.PAXRecords = 0, map[string]string{wire.PaxSize: strconv.FormatInt(info.Size(), 10)}
		return left, out.WriteHeader(head)
	}
	if err := out.WriteHeader(head); err != nil {
		return left, err
	}
	// the program may be writing to it: a shorter one ends the transfer
	n, err := io.Copy(out, io.LimitReader(file, info.Size()))
	if err == nil && n < info.Size() {
		_, err = io.CopyN(out, zeros{}, info.Size()-n)
	}
	return left - info.Size(), err
}

// zeros stand for what a file has lost while it was read.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
