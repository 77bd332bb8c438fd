package enginetest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

const (
	// exitAbandoned is what an init ends with that nobody lets begin.
	exitAbandoned = 125
	exitKilled    = 128 + 9
)

// WithInit returns a program that is started as in a sandbox: by an init that connects to its
// host, waits for word where it is told to, tells of the end, and stays until its host closes the
// connection. The sources of the mounts are the very directories that were mounted, also when they
// are moved meanwhile.
func WithInit(program Program) Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		mounts, release := held(spec.Mounts)
		defer release()
		spec.Mounts = mounts
		if !slices.Contains(spec.Entrypoint, initreport.ControlPath) {
			return program(ctx, spec, stdout, stderr)
		}
		host := connect(ctx, spec)
		defer func() { _ = host.Close() }() // what was to be said has been
		stop := context.AfterFunc(ctx, func() { _ = host.Close() })
		defer stop()
		_, _ = io.WriteString(host, initreport.Ready)
		if slices.Contains(spec.Entrypoint, "-park") && !begin(host, &spec) {
			report(spec, host, initreport.Report{ExitCode: exitAbandoned, Abandoned: true})
			return exitAbandoned
		}
		if ctx.Err() != nil {
			return exitKilled
		}
		code := program(ctx, spec, stdout, stderr)
		if ctx.Err() == nil && code >= 0 {
			report(spec, host, initreport.Report{ExitCode: code, LogEnd: endID(spec)}, stdout, stderr)
		}
		return code
	}
}

// held opens the mounts, and names them by what was opened.
func held(mounts []runtime.Mount) (by []runtime.Mount, release func()) {
	var files []*os.File
	for _, m := range mounts {
		if f, err := os.Open(m.Source); err == nil {
			files = append(files, f)
			m.Source = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		}
		by = append(by, m)
	}
	return by, func() {
		for _, f := range files {
			_ = f.Close() // read only
		}
	}
}

// connect returns the init's connection. Where its host has gone by now, nothing of it comes and goes.
func connect(ctx context.Context, spec runtime.ContainerSpec) *net.UnixConn {
	for _, m := range spec.Mounts {
		if m.Target != path.Dir(initreport.ControlPath) {
			continue
		}
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, "unix", path.Join(m.Source, path.Base(initreport.ControlPath))); err == nil {
			return conn.(*net.UnixConn)
		}
	}
	return new(net.UnixConn) // whose methods return errors
}

// begin waits for the start message and takes it into the spec.
func begin(host io.Reader, spec *runtime.ContainerSpec) bool {
	head := make([]byte, initreport.StartHeadBytes)
	if _, err := io.ReadFull(host, head); err != nil {
		return false
	}
	body := make([]byte, min(binary.BigEndian.Uint32(head), initreport.MaxStartBytes))
	if _, err := io.ReadFull(host, body); err != nil {
		return false
	}
	texts := strings.Split(strings.TrimSuffix(string(body), "\x00"), "\x00")
	if len(texts) < 3 {
		return false
	}
	n, err := strconv.Atoi(texts[2])
	if err != nil || n < 0 || n > len(texts)-3 {
		return false
	}
	spec.Entrypoint = slices.Clone(spec.Entrypoint)
	if at := slices.Index(spec.Entrypoint, "-stdin"); at >= 0 && texts[0] != "" {
		spec.Entrypoint[at+1] = texts[0]
	}
	spec.Cmd = slices.Concat(spec.Cmd, texts[3:3+n])
	spec.Env = slices.Concat(spec.Env, texts[3+n:])
	return true
}

// endID is what the last line of both streams says, or "" where they end without one.
func endID(spec runtime.ContainerSpec) string {
	if !slices.Contains(spec.Entrypoint, "-end") {
		return ""
	}
	return strings.Repeat("0e", initreport.EndIDBytes/2)
}

// report leaves word of the end in the report's file, tells the host, which may have gone, ends the
// streams, and waits until the host closes the connection.
func report(spec runtime.ContainerSpec, host *net.UnixConn, r initreport.Report, streams ...io.Writer) {
	r.Version, r.Source = initreport.Version, initreport.Rusage
	for _, m := range spec.Mounts {
		if m.Target == initreport.Path {
			_ = os.WriteFile(m.Source, r.Append(nil), 0o600)
		}
	}
	_, _ = host.Write(r.Append(nil))
	_ = host.CloseWrite()
	for _, stream := range streams {
		if r.LogEnd != "" {
			_, _ = io.WriteString(stream, initreport.EndHead+r.LogEnd+initreport.EndTail)
		}
	}
	_, _ = io.Copy(io.Discard, host)
}
