package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

func init() {
	acts["nest"] = func(a []string) { nest(a[0]) }
	acts["nested"] = nested
}

// nest makes sandboxes without the engine, for whoever connects, until its stdin ends. It is root and may
// make namespaces.
func nest(socket string) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		c, err := listener.AcceptUnix()
		if err != nil {
			panic(err)
		}
		go hatch(c)
	}
}

// hatch gets stdout and stderr, the arguments of nested, and then signals. It answers with the exit code.
func hatch(c *net.UnixConn) {
	defer c.Close()
	streams, err := receiveFiles(c)
	var args []string
	orders := json.NewDecoder(c)
	if err := errors.Join(err, orders.Decode(&args)); err != nil {
		fmt.Fprintln(os.Stderr, "hatch:", err)
		return
	}
	cmd := exec.Command("/proc/self/exe", append([]string{"nested"}, args...)...)
	cmd.Stdout, cmd.Stderr = streams[0], streams[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Setsid:     true,
	}
	err = cmd.Start()
	streams[0].Close()
	streams[1].Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hatch:", err)
		return
	}
	go func() {
		var signal syscall.Signal
		for orders.Decode(&signal) == nil {
			cmd.Process.Signal(signal)
		}
		cmd.Process.Kill() // who asked for it has gone
	}()
	cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		code = 128 + int(status.Signal())
	}
	json.NewEncoder(c).Encode(code)
}

func receiveFiles(c *net.UnixConn) ([]*os.File, error) {
	oob := make([]byte, syscall.CmsgSpace(2*4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("it came without files: %v", err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 2 {
		return nil, fmt.Errorf("it came with %d files: %v", len(fds), err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return []*os.File{os.NewFile(uintptr(fds[0]), "stdout"), os.NewFile(uintptr(fds[1]), "stderr")}, nil
}

// nested furnishes its new namespaces as the engine does those of a sandbox, and becomes the init there.
func nested(a []string) {
	runtime.LockOSThread() // no_new_privs is a thread's
	var env []string
	flags := flag.NewFlagSet("nested", flag.ExitOnError)
	dir := flags.String("workdir", "/", "")
	flags.Func("env", "", func(entry string) error {
		name, _, _ := strings.Cut(entry, "=")
		env = append(slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }), entry)
		return nil
	})
	must(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	flags.Func("bind", "", bind)
	must(flags.Parse(a))
	must(syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""))
	for _, target := range []string{"/dev/shm", "/tmp"} { // the last, as what is bound comes from below it
		must(syscall.Mount("tmpfs", target, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777"))
	}
	must(loopbackUp())
	must(syscall.Chdir(*dir))
	const prSetNoNewPrivs, nobody = 38, 65532
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0); errno != 0 {
		panic(errno)
	}
	must(errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)))
	must(syscall.Exec("/run/aod/init", append([]string{"/run/aod/init"}, flags.Args()...), env))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// bind does what "SOURCE:TARGET" or "SOURCE:TARGET:ro" says.
func bind(what string) error {
	parts := strings.Split(what, ":")
	if err := syscall.Mount(parts[0], parts[1], "", syscall.MS_BIND, ""); err != nil || len(parts) < 3 {
		return err
	}
	return syscall.Mount("", parts[1], "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := [40]byte{0: 'l', 1: 'o', syscall.IFNAMSIZ: syscall.IFF_UP}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
