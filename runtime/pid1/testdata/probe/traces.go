package main

import (
	"net"
	"os"
)

func init() {
	acts["try"] = func(a []string) { try(a[0], a[1]) }
	acts["write"] = write
	acts["attempt"] = func(a []string) { attempt(a[0], a[1]) }
}

// try sends one byte, or finds that it can't.
func try(network, address string) {
	c, err := net.Dial(network, address)
	if err != nil {
		return
	}
	c.Write([]byte{0})
	c.Close()
}

// attempt tries something, and ignores what comes of it.
func attempt(what, path string) {
	switch what {
	case "nothing":
		_, _ = os.ReadFile(path)
	case "write":
		_ = os.WriteFile(path, nil, 0o600)
	case "undo":
		_ = os.WriteFile(path, nil, 0o600)
		_ = os.Remove(path)
	case "mkdir":
		_ = os.Mkdir(path, 0o700)
	case "rename":
		_ = os.Rename("/nothing", path)
	case "listen":
		if l, err := net.Listen("tcp", path); err == nil {
			_ = l.Close()
		}
	case "bind":
		if c, err := net.ListenPacket("udp", path); err == nil {
			_ = c.Close()
		}
	case "many":
		for range 5000 {
			_ = os.Remove(path)
		}
	}
}

func write(files []string) {
	for _, file := range files {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			panic(err)
		}
	}
}
