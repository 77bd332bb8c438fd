package workers

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// filesIn lists the files below a directory by their names in it.
func filesIn(dir string) (files []api.File) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a run without files has no directory
		}
		name, err := filepath.Rel(dir, path)
		info, gone := d.Info()
		if err == nil && gone == nil {
			files = append(files, api.File{Name: filepath.ToSlash(name), SizeBytes: info.Size()})
		}
		return nil
	})
	return files
}

// uploadDir is where the output files of an attempt come in.
func (l *lease) uploadDir() string { return filepath.Join(l.dir(), "upload") }

// dir is the attempt's directory. The run's own number of its attempt belongs to the goroutine that leads it.
func (l *lease) dir() string { return filepath.Join(l.run.Dir, strconv.Itoa(l.Attempt)) }

// incomingDir is where the files lie that callees of the attempt returned.
func (l *lease) incomingDir() string { return filepath.Join(l.dir(), "incoming") }

// have returns how many bytes of an output file have come.
func (l *lease) have(name string) (int64, error) {
	for _, dir := range []string{l.uploadDir(), l.run.OutputDir()} {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))) //nolint:gosec // a clean name
		switch {
		case err == nil && info.Mode().IsRegular():
			return info.Size(), nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return 0, run.StorageFault(err)
		}
	}
	return 0, nil
}

// put takes a part of an output file, which goes on where the file ends. One that doesn't is a Conflict fault.
func (l *lease) put(name string, offset int64, part io.Reader) (size int64, err error) {
	if name, err = contract.CleanName(name, contract.StageOutput); err != nil {
		return 0, fault.Wrap(fault.Input, err, "a file of the output can't have this name")
	}
	l.uploading.Lock()
	defer l.uploading.Unlock()
	if err := os.MkdirAll(l.uploadDir(), 0o700); err != nil { //nolint:gosec // the lease's own, not the request's
		return 0, run.StorageFault(err)
	}
	file, err := openBelow(l.uploadDir(), name)
	if err != nil {
		return 0, run.StorageFault(err)
	}
	defer func() { err = errors.Join(err, run.StorageFault(file.Close())) }()
	info, err := file.Stat()
	if err != nil {
		return 0, run.StorageFault(err)
	}
	if info.Size() != offset {
		return info.Size(), fault.New(fault.Conflict, "%d bytes of the file have come", info.Size()).
			WithHint("go on from there")
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return offset, run.StorageFault(err)
	}
	return l.appendPart(file, offset, part)
}

// openBelow opens a file below a directory for writing, and makes it if it isn't there.
func openBelow(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := safefs.MkdirAll(root, path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
}

// appendPart writes a part of a file within what all output files together may have.
func (l *lease) appendPart(file *os.File, offset int64, part io.Reader) (int64, error) {
	room := l.run.Limits.OutputBytes - l.uploaded
	if len(l.names) >= l.run.Limits.OutputFiles && !slices.Contains(l.names, file.Name()) {
		room = 0
	}
	n, err := io.Copy(file, io.LimitReader(part, room+1))
	if l.uploaded += n; n > room {
		return offset, fault.New(fault.TooLarge, "the output files are more than they may be")
	}
	if !slices.Contains(l.names, file.Name()) {
		l.names = append(l.names, file.Name())
	}
	return offset + n, err
}

// take makes the attempt's result of what its worker told of the end.
func (x *execution) take(ctx context.Context, l *lease, told wire.Ended) (run.Result, error) {
	x.note(told.Progress)
	for _, warning := range told.Warnings[:min(len(told.Warnings), maxWarnings)] {
		x.run.Warn("%s", run.Bounded(warning, run.MaxMessage))
	}
	x.f.registry.find(l.Worker).drop("cancel/" + l.ID)
	if told.Changes && x.run.Project {
		if findings, err := x.takeChanges(l); err != nil || len(findings) > 0 {
			return untrue(findings...), err
		}
	}
	if err := x.keepTurn(l, told.Session); err != nil {
		return run.Result{}, err
	}
	if told.State == api.Failed && ctx.Err() != nil && !letGo(ctx) { // it may have failed because its calls were ended
		return run.Stopped(told.ExitCode, context.Cause(ctx)), nil
	}
	if told.State != api.Completed {
		return failed(told), nil
	}
	return x.takeOutput(ctx, l, told)
}

// takeOutput makes the result of an attempt that has completed, if it keeps the contract.
func (x *execution) takeOutput(ctx context.Context, l *lease, told wire.Ended) (run.Result, error) {
	output, err := contract.Decode(told.Output, x.run.Limits.ResultBytes)
	if err != nil {
		return untrue(run.Undecodable(err)), nil
	}
	delivered, err := x.deliver(l, told.Files)
	if err != nil {
		return run.Result{}, err
	}
	findings, err := x.check(ctx, output)
	if err != nil {
		return run.Result{}, err
	}
	if len(findings) > 0 {
		return untrue(findings...), nil
	}
	success := 0
	return run.Result{
		State: api.Completed, Outcome: api.Success, ExitCode: &success, Output: output.JSON(),
		Files: x.run.Delivered(delivered, output),
	}, nil
}

// maxWarnings is how many a worker may tell of an attempt.
const maxWarnings = 100

// failed is the result of an attempt that didn't succeed.
func failed(told wire.Ended) run.Result {
	result := run.Result{State: told.State, Outcome: told.Outcome, ExitCode: told.ExitCode, Failure: told.Failure}
	known := []api.State{api.Failed, api.Timeout, api.Cancelled}
	if !slices.Contains(known, told.State) || told.Failure == nil || told.Outcome == api.Success || told.Outcome == "" {
		return untrue(fault.Finding{Message: "the worker told of no end that there is"})
	}
	failure := *told.Failure
	failure.Kind, failure.Type = run.Bounded(failure.Kind, run.MaxType), run.Bounded(failure.Type, run.MaxType)
	failure.Message = run.Bounded(failure.Message, 2*run.MaxMessage)
	failure.Hint = run.Bounded(failure.Hint, run.MaxMessage)
	failure.Findings = failure.Findings[:min(len(failure.Findings), maxWarnings)]
	result.Failure = &failure
	return result
}

// untrue is the result of an attempt of which its worker told what can't be: it had held it against the contract.
func untrue(findings ...fault.Finding) run.Result {
	return run.Result{State: api.Failed, Outcome: api.ContractViolation, Failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.ContractViolation),
		Message: "the result that its worker gave breaks the contract", Findings: findings,
		Hint: "has the worker the version of the server?",
	}}
}

// check holds the output against the unit's contract.
func (x *execution) check(ctx context.Context, output contract.Payload) ([]fault.Finding, error) {
	if err := os.MkdirAll(x.run.OutputDir(), 0o755); err != nil {
		return nil, run.StorageFault(err)
	}
	root, err := os.OpenRoot(x.run.OutputDir())
	if err != nil {
		return nil, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // read only
	schema := x.run.Unit.Contract.Output
	findings, err := schema.ValidateContext(ctx, output)
	return append(findings, schema.CheckFiles(output, contract.StageOutput, root)...), err
}

// deliver moves the files that came to where the run has its output.
func (x *execution) deliver(l *lease, files []api.File) (delivered []runtime.File, err error) {
	for _, file := range files {
		name, err := contract.CleanName(file.Name, contract.StageOutput)
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "a file of the output can't have its name")
		}
		if err := x.moveOut(l, name, file); err != nil {
			return nil, err
		}
		delivered = append(delivered, runtime.File{Name: name, SizeBytes: file.SizeBytes, SHA256: file.SHA256})
	}
	return delivered, nil
}

// moveOut moves one file, which has to be what the worker says.
func (x *execution) moveOut(l *lease, name string, file api.File) error {
	to := filepath.Join(x.run.OutputDir(), filepath.FromSlash(name))
	from := filepath.Join(l.uploadDir(), filepath.FromSlash(name))
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		from = to // an earlier process has moved it
	}
	content, _, err := safefs.OpenNamed(from)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "a file of the output hasn't come from the worker")
	}
	defer func() { _ = content.Close() }() // read only
	size, sum, err := safefs.Digest(content)
	if err != nil {
		return run.StorageFault(err)
	}
	if size != file.SizeBytes || sum != file.SHA256 {
		return fault.New(fault.Unavailable, "a file of the output isn't what its worker says")
	}
	if from == to {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return run.StorageFault(err)
	}
	return run.StorageFault(errors.Join(os.Chmod(from, 0o644), os.Rename(from, to)))
}

// serveFile answers with a regular file below a directory, or a part of it.
func serveFile(w http.ResponseWriter, r *http.Request, dir, name string, stage contract.Stage) error {
	name, err := contract.CleanName(name, stage)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "there is no such file")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "there is no such file")
	}
	defer func() { _ = root.Close() }() // read only
	file, info, err := safefs.OpenRegular(root, name)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "there is no such file")
	}
	defer func() { _ = file.Close() }() // read only
	w.Header().Set("ETag", strconv.Quote(fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), file)
	return nil
}

// transfer is a set of files that a worker was asked for, or is to fetch.
type transfer struct {
	dir      string // into which they come; "": they are to be fetched
	from     string // in the sandbox
	names    []string
	maxBytes int64
	over     chan struct{} // closed when it is done
	end      func(error)
	err      error // why it isn't; set before over is closed
}

// begin returns the transfer, which can end now.
func (t *transfer) begin() *transfer {
	var once sync.Once
	t.over = make(chan struct{})
	t.end = func(err error) {
		once.Do(func() {
			t.err = err
			close(t.over)
		})
	}
	return t
}

// transfers implement handoff.FileTransfer: the directories that a program sees are at its worker.
type transfers struct {
	x     *execution
	lease *lease
}

// Fetch implements handoff.FileTransfer.
func (t transfers) Fetch(
	ctx context.Context, from string, names []string, maxBytes int64,
) (dir string, done func(), err error) {
	if dir, err = os.MkdirTemp(t.lease.dir(), "outgoing-"); err != nil {
		return "", nil, run.StorageFault(err)
	}
	done = func() { _ = safefs.RemoveTree(dir) } // if it fails, the end of the run removes it
	if err := t.ask(ctx, &transfer{dir: dir, from: from, names: names, maxBytes: maxBytes}); err != nil {
		done()
		return "", nil, err
	}
	return dir, done, nil
}

// Send implements handoff.FileTransfer.
func (t transfers) Send(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return t.ask(ctx, &transfer{names: names})
}

// ask has the worker do its part, and waits until it has.
func (t transfers) ask(ctx context.Context, of *transfer) error {
	id, l := rand.Text(), t.lease
	l.mu.Lock()
	l.transfers[id] = of.begin()
	l.mu.Unlock()
	w, key := t.x.f.registry.find(l.Worker), "transfer/"+l.ID+"/"+id
	w.put(key, wire.Order{Transfer: &wire.Transfer{
		Lease: l.ID, ID: id, Names: of.names, From: of.from, Incoming: of.dir == "", MaxBytes: of.maxBytes,
	}})
	defer func() {
		w.drop(key)
		l.mu.Lock()
		delete(l.transfers, id)
		l.mu.Unlock()
	}()
	select {
	case <-of.over:
		return of.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// transferOf returns a transfer that a worker was asked for; nil: it isn't wanted any more.
func (l *lease) transferOf(id string) *transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.transfers[id]
}

// receive unpacks files that a worker was asked for. What isn't one of them is refused.
func (t *transfer) receive(from io.Reader) error {
	return unpackInto(t.dir, from, t.maxBytes, func(name string) bool { return slices.Contains(t.names, name) })
}

// unpackInto unpacks a worker's tar into a directory: files that are wanted, of so many bytes at most.
func unpackInto(dir string, from io.Reader, left int64, wanted func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	for archive := tar.NewReader(from); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.BadRequest, err, "the files can't be read")
		}
		if !wanted(head.Name) {
			return fault.New(fault.BadRequest, "a file came that nobody asked for")
		}
		if left -= head.Size; left < 0 {
			return fault.New(fault.TooLarge, "the files are more than was asked for")
		}
		if err := place(root, head, archive); err != nil {
			return run.StorageFault(err)
		}
	}
}

// place writes one entry: a file, a hole of the size of one that is too large, or a directory for what is no file.
func place(root *os.Root, head *tar.Header, content io.Reader) error {
	if err := safefs.MkdirAll(root, path.Dir(head.Name), 0o700); err != nil {
		return err
	}
	if head.Typeflag != tar.TypeReg {
		return safefs.MkdirAll(root, head.Name, 0o700)
	}
	file, err := root.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if size, err := strconv.ParseInt(head.PAXRecords[wire.PaxSize], 10, 64); err == nil && size > 0 {
		return errors.Join(file.Truncate(size), file.Close())
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
