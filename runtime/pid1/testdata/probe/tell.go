package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func init() {
	acts["connect"] = connect
	acts["descriptors"] = descriptors
	acts["hold"] = hold
	acts["tell"] = tell
}

// tell prints what it was started with.
func tell(a []string) {
	in, err := io.ReadAll(os.Stdin)
	fmt.Printf("%q %q %v\n%q\n", a, in, err, os.Environ())
}

// connect prints how connecting to each socket went.
func connect(sockets []string) {
	for _, socket := range sockets {
		fmt.Println(second(net.Dial("unix", socket)))
	}
}

// descriptors prints what processes have open, as far as it may know.
func descriptors(pids []string) {
	for _, pid := range pids {
		dir := "/proc/" + pid + "/fd"
		names, err := os.ReadDir(dir)
		for _, name := range names {
			target, _ := os.Readlink(dir + "/" + name.Name())
			fmt.Println(pid, target)
		}
		fmt.Println(pid, err)
	}
}

// hold leaves a deaf process behind that has a connection to the API.
func hold(a []string) {
	c, err := net.Dial("unix", "/run/aod/aod.sock")
	if err != nil {
		panic(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // it was accepted
		panic(err)
	}
	leaveDeaf()
	os.Exit(number(a[0]))
}
