//go:build linux

package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pairOf returns both ends of a connection.
func pairOf(t *testing.T, network, address string) (one, other net.Conn) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if one, err = net.Dial(network, listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if other, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = one.Close(), other.Close() })
	return one, other
}

func TestTheKernelPassesBytesOn(t *testing.T) {
	source, from := pairOf(t, "tcp", "127.0.0.1:0")
	to, sink := pairOf(t, "unix", filepath.Join(t.TempDir(), "s"))
	before := pipes(t)
	all := much(t)
	go func() {
		_, _ = source.Write(all)
		_ = source.Close()
	}()
	counted := 0
	ended := make(chan error, 1)
	go func() {
		ended <- splice(to, from, func(n int) { counted += n })
		_ = to.Close()
	}()
	if there, err := io.ReadAll(sink); err != nil || !bytes.Equal(there, all) {
		t.Errorf("%d bytes of %d are there, %v", len(there), len(all), err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) || counted != len(all) {
		t.Errorf("%v, %d bytes were counted", err, counted)
	}
	for pipe := range pipes(t) {
		if !before[pipe] {
			t.Errorf("%s is left", pipe)
		}
	}
}

func TestPassingOnEndsWithEitherSide(t *testing.T) {
	for name, cut := range map[string]func(to, sink, source, from net.Conn){
		"the reader has gone": func(_, sink, source, _ net.Conn) {
			_ = sink.Close()
			for { // until the pipe's end is heard of
				if _, err := source.Write(make([]byte, chunk)); err != nil {
					return
				}
			}
		},
		"nobody reads, and it is closed here": func(to, _, source, _ net.Conn) {
			_, _ = source.Write(make([]byte, chunk))
			_ = to.Close()
			_, _ = source.Write(make([]byte, chunk))
		},
		"nothing comes, and it is closed here": func(_, _, _, from net.Conn) { _ = from.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			source, from := pairOf(t, "tcp", "127.0.0.1:0")
			to, sink := pairOf(t, "tcp", "127.0.0.1:0")
			ended := make(chan error, 1)
			go func() {
				ended <- splice(to, from, func(int) {})
				_ = from.Close()
			}()
			cut(to, sink, source, from)
			select {
			case err := <-ended:
				if err == nil || errors.Is(err, io.EOF) {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("it goes on")
			}
		})
	}
}

// pipes returns those that this process has, by the kernel's names of them.
func pipes(t *testing.T) map[string]bool {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range all {
		if name, _ := os.Readlink(file); strings.HasPrefix(name, "pipe:") { // one may have been closed since
			found[name] = true
		}
	}
	return found
}
