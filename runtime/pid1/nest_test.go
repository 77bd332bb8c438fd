//go:build linux

package pid1

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// nest is one container in which most sandboxes of these tests are. What the init needs is of the kernel:
// namespaces, an unprivileged user, a mounted /run/aod. There it takes a hundredth of what a container takes.
type nest struct {
	socket string
	cmd    *exec.Cmd
	stdin  io.Closer // the nest is there until it is closed
}

func newNest(dir, image string) (n nest, err error) {
	n = nest{socket: filepath.Join(dir, "nest.sock")}
	n.cmd = exec.Command("docker", "run", "--rm", "-i", "--name", fmt.Sprintf("aod-test-init-%d-nest", os.Getpid()), "--label", label,
		"--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
		"--security-opt", "systempaths=unconfined", "--read-only", "--network", "none", "--volume", dir+":"+dir, "--entrypoint", "/probe", image, "nest", n.socket)
	n.cmd.Stderr = os.Stderr
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		return n, err
	}
	if n.stdin, err = n.cmd.StdinPipe(); err != nil {
		return n, err
	}
	if err := n.cmd.Start(); err != nil {
		return n, err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		return n, errors.Join(fmt.Errorf("the nest said %q: %w", line, err), n.close())
	}
	return n, nil
}

func (n nest) close() error {
	if n.cmd == nil || n.cmd.Process == nil {
		return nil
	}
	n.stdin.Close()
	return n.cmd.Wait()
}

// nested are the sandboxes in the nest that take signals, by name.
var nested sync.Map

// inNest starts the sandbox in the nest. Wait returns the exit code at its end.
func (s sandbox) inNest(t *testing.T, f harness, report string, stdout, stderr io.Writer) (wait func() int) {
	t.Helper()
	args := []string{"-bind", s.api + ":/run/aod:ro", "-bind", filepath.Join(f.dir, "init") + ":/run/aod/init:ro", "-env", "PATH=/usr/bin:/bin"}
	if !s.noFile {
		args = append(args, "-bind", report+":/run/aod/report")
	}
	for _, entry := range s.env {
		args = append(args, "-env", entry)
	}
	if s.out != "" {
		args = append(args, "-bind", s.out+":/out")
	}
	if s.workdir != "" {
		args = append(args, "-workdir", s.workdir)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: f.nest.socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	streams := sendStreams(t, c, stdout, stderr)
	name := containerName(t)
	nested.Store(name, c) // before it begins: its host may send a signal at once
	if err := json.NewEncoder(c).Encode(append(append(args, "--"), s.program...)); err != nil {
		t.Fatal(err)
	}
	return func() (code int) {
		defer c.Close()
		defer nested.Delete(name)
		err := errors.Join(c.SetReadDeadline(time.Now().Add(testkit.Patience)), json.NewDecoder(c).Decode(&code))
		if err != nil {
			t.Fatal(err)
		}
		streams.Wait()
		return code
	}
}

// sendStreams hands two pipes over, what comes out of which is copied until nobody has their ends.
func sendStreams(t *testing.T, c *net.UnixConn, to ...io.Writer) *sync.WaitGroup {
	t.Helper()
	var copying sync.WaitGroup
	var fds []int
	for _, w := range to {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		fds = append(fds, int(in.Fd()))
		copying.Go(func() {
			defer out.Close()
			_, _ = io.Copy(w, out)
		})
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, syscall.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	return &copying
}

// signalTo sends a signal to the process 1 of a sandbox.
func signalTo(t *testing.T, s syscall.Signal) func(string) {
	return func(container string) {
		t.Helper()
		if c, found := nested.Load(container); found {
			if err := json.NewEncoder(c.(*net.UnixConn)).Encode(s); err != nil {
				t.Error(err)
			}
			return
		}
		if out, err := exec.Command("docker", "kill", "--signal", fmt.Sprint(int(s)), container).CombinedOutput(); err != nil {
			t.Errorf("docker kill: %v: %s", err, out)
		}
	}
}
