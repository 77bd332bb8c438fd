package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"time"
)

// before does what leaves traces in a sandbox, or shows what was given.
func before(given arguments) {
	switch variant {
	case "chats":
		fmt.Fprintln(os.Stderr, `{"level":"info","msg":"reading"}`)
	case "variable-is-echoed":
		fmt.Fprintln(os.Stderr, os.Environ())
	case "prompt-is-echoed":
		fmt.Fprintln(os.Stderr, "working on", given.prompt)
	case "lang-is-echoed":
		fmt.Fprintln(os.Stderr, "language:", given.lang)
	case "connects":
		dial("tcp", "192.0.2.1:80")
	case "asks-for-a-name":
		dial("udp", "192.0.2.1:53")
	case "listens":
		if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			_ = l.Close()
		}
	case "binds":
		if c, err := net.ListenPacket("udp", "127.0.0.1:0"); err == nil {
			_ = c.Close()
		}
	case "leaves-a-file":
		_ = os.WriteFile("/tmp/cache", []byte("x"), 0o600)
	case "removes-its-file":
		_ = os.WriteFile("/tmp/cache", []byte("x"), 0o600)
		_ = os.Remove("/tmp/cache")
	case "shares-memory":
		_ = os.WriteFile("/dev/shm/cache", []byte("x"), 0o600)
		_ = os.Remove("/dev/shm/cache")
	case "tries-to-write":
		_ = os.WriteFile("/cache", []byte("x"), 0o600)
	case "tries-to-make-a-directory":
		_ = os.MkdirAll("/var/cache/unit", 0o700)
	case "tries-to-remove":
		_ = os.Remove("/unit")
	case "leaves-a-process":
		child := exec.Command("/proc/self/exe")
		child.Env = []string{"VARIANT=lingering"}
		_ = child.Start()
	case "writes-to-no-file":
		_ = os.WriteFile("/dev/null", []byte("x"), 0o600)
		if f, err := os.OpenFile("/proc/self/fd/2", os.O_WRONLY, 0); err == nil {
			_ = f.Close()
		}
	}
}

func dial(network, address string) {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_, _ = c.Write([]byte("hello"))
		_ = c.Close()
	}
}

func shuffled() []int { return rand.Perm(8) }

// anyOrder writes the same object with its fields in any order.
func anyOrder(any) string {
	fields := []string{`"a": 1`, `"b": 2`, `"c": 3`}
	rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return "{" + fields[0] + ", " + fields[1] + ", " + fields[2] + "}"
}
