package enginetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func testExecs(t *testing.T, s suite) {
	c := carrying(t, s)
	ctx := c.context(t)
	r := c.start(t, c.spec("while :; do sleep 0.05; done"))
	exec := func(t *testing.T, script string) io.ReadWriteCloser {
		t.Helper()
		conn, err := c.engine.Exec(ctx, r.id, []string{"/bin/sh", "-c", script})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	t.Run("what it writes is read to its end", func(t *testing.T) {
		if out := readAll(t, exec(t, "echo one; echo nothing >&2; echo two")); out != "one\ntwo\n" {
			t.Errorf("%q", out)
		}
	})
	t.Run("it is the container's user, and in the container", func(t *testing.T) {
		if out := readAll(t, exec(t, "id -u; id -g; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status")); out != "65534\n65534\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n" {
			t.Errorf("%q", out)
		}
	})
	t.Run("every byte arrives both ways", func(t *testing.T) {
		conn := exec(t, "exec cat")
		bytes256 := make([]byte, 256)
		for i := range bytes256 {
			bytes256[i] = byte(i)
		}
		for range 3 { // a conversation
			echo(t, conn, bytes256)
		}
	})
	t.Run("ten megabytes arrive both ways", func(t *testing.T) {
		said := make([]byte, floodBytes)
		_, _ = rand.Read(said)
		echo(t, exec(t, "exec cat"), said)
	})
	t.Run("what it writes to stderr holds nothing up", func(t *testing.T) {
		conn := exec(t, "head -c 10485760 /dev/zero >&2; exec cat")
		echo(t, conn, []byte("still here"))
	})
	t.Run("Close ends its stdin, so that it ends", func(t *testing.T) {
		const marker = "4242.625"
		conn := exec(t, "echo $$; cat >/dev/null; : "+marker)
		pid := readLine(t, conn)
		if out := readAll(t, exec(t, "test -d /proc/"+pid+" && echo there")); out != "there\n" {
			t.Fatalf("the program can't be seen: %q", out)
		}
		for range 2 {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("after Close it reads %d, %v", n, err)
		}
		testkit.Eventually(t, "the program ends", func() bool { return readAll(t, exec(t, "test -d /proc/"+pid+" || echo gone")) == "gone\n" })
	})
	t.Run("Close returns when nothing was ever read", func(t *testing.T) {
		conn := exec(t, "head -c 10485760 /dev/zero; exec cat")
		closed := make(chan error, 1)
		go func() { closed <- conn.Close() }()
		if err := receive(t, closed); err != nil {
			t.Error(err)
		}
	})
	t.Run("it isn't bounded by the context that it was started with", func(t *testing.T) {
		short, cancel := context.WithCancel(ctx)
		conn, err := c.engine.Exec(short, r.id, []string{"cat"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		cancel()
		echo(t, conn, []byte("still here"))
	})
	t.Run("it ends with the container", func(t *testing.T) {
		other := c.start(t, c.spec(scriptSleep))
		conn, err := c.engine.Exec(ctx, other.id, []string{"cat"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		echo(t, conn, []byte("here"))
		if err := c.Engine.Kill(ctx, other.id); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, conn); ended <- err }()
		receive(t, ended)
	})
	t.Run("in a container that isn't running it is a Conflict, and in none NotFound", func(t *testing.T) {
		ended := c.start(t, c.spec(scriptSmall))
		ended.wait(t)
		testkit.Eventually(t, "the state says exited", func() bool {
			state, err := c.Engine.Inspect(ctx, ended.id)
			return err == nil && state.Status == runtime.StatusExited
		})
		for _, id := range []string{c.create(t, c.spec(scriptSmall)), ended.id} {
			_, err := c.engine.Exec(ctx, id, []string{"cat"})
			wantKind(t, err, fault.Conflict)
		}
		_, err := c.engine.Exec(ctx, strings.Repeat("0", 64), []string{"cat"})
		wantKind(t, err, fault.NotFound)
	})
	t.Run("a program that isn't there says nothing", func(t *testing.T) {
		conn, err := c.engine.Exec(ctx, r.id, []string{"/no/such/program"})
		if err != nil {
			return // an engine may know at once
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1<<10)); err == nil {
			_, err = io.Copy(io.Discard, conn) // the engine's words
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// echo says something to a program that says it again, and reads it meanwhile.
func echo(t *testing.T, conn io.ReadWriter, said []byte) {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(said)
		wrote <- err
	}()
	heard := make([]byte, len(said))
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(conn, heard)
		read <- err
	}()
	if err := receive(t, read); err != nil || !bytes.Equal(heard, said) {
		t.Errorf("%d bytes came back wrong: %v", len(said), err)
	}
	if err := receive(t, wrote); err != nil {
		t.Error(err)
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	return collect(r).all(t)
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line := make(chan string, 1)
	go func() {
		var text []byte
		for one := make([]byte, 1); ; text = append(text, one[0]) {
			if _, err := io.ReadFull(r, one); err != nil || one[0] == '\n' {
				line <- string(text)
				return
			}
		}
	}()
	select {
	case text := <-line:
		return text
	case <-time.After(testkit.Patience):
		t.Fatal("no line came")
		return ""
	}
}
