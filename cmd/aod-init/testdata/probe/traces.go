package main

import (
	"net"
	"os"
)

func init() {
	acts["try"] = func(a []string) { try(a[0], a[1]) }
	acts["write"] = write
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

func write(files []string) {
	for _, file := range files {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			panic(err)
		}
	}
}
