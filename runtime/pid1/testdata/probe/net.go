package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const api = "127.0.0.1:7070"

func init() {
	acts["bomb-and-flood"] = bombAndFlood
	acts["flood"] = func([]string) { flood() }
	acts["hear"] = func([]string) { hear() }
	acts["leave-open"] = leaveOpen
	acts["many"] = func(a []string) { many(number(a[0])) }
	acts["reset"] = func(a []string) { reset(number(a[0])) }
	acts["round-trips"] = func(a []string) { roundTrips(number(a[0]), number(a[1])) }
	acts["take-port"] = func([]string) { fmt.Println(second(net.Listen("tcp4", api))) }
	acts["wait-for-end"] = func([]string) { waitForEnd() }
}

func dial() *net.TCPConn {
	c, err := net.Dial("tcp4", api)
	if err != nil {
		panic(err)
	}
	return c.(*net.TCPConn)
}

// pattern is a stream of n bytes that no two connections share.
type pattern struct{ state, left uint64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(uint64(len(b)), p.left)
	for i := range b[:n] {
		p.state = p.state*6364136223846793005 + 1442695040888963407
		b[i] = byte(p.state >> 56)
	}
	p.left -= n
	return int(n), nil
}

// roundTrips has n connections at once send that many bytes each, end their half, and
// read until the server ends its own. Both sums are printed; then what init took.
func roundTrips(n, size int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c := dial()
			defer c.Close()
			sent, got := sha256.New(), sha256.New()
			go func() {
				io.Copy(c, io.TeeReader(&pattern{uint64(i), uint64(size)}, sent))
				c.CloseWrite()
			}()
			m, err := io.Copy(got, c)
			if m != int64(size) || err != nil || string(got.Sum(nil)) != string(sent.Sum(nil)) {
				fmt.Println("connection", i, "got", m, err)
			}
		})
	}
	all.Wait()
	fmt.Println("done")
	cat([]string{"/proc/1/status"})
}

// many makes n connections one after the other.
func many(n int) {
	for range n {
		c := dial()
		c.Write([]byte("x"))
		c.CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "x" {
			fmt.Printf("got %q, %v\n", got, err)
		}
		c.Close()
	}
	fmt.Println("done")
	cat([]string{"/proc/1/status"})
}

// hear reads until the server ends its half, and answers then. It stays until the server
// ends another connection: what a program said last and waits for no answer to may be lost.
func hear() {
	c := dial()
	got, err := io.ReadAll(c)
	fmt.Printf("heard %q %v\n", got, err)
	fmt.Fprintf(c, "and %s to you", got)
	c.Close()
	_, _ = io.Copy(io.Discard, dial())
}

// waitForEnd prints how long a connection lasted.
func waitForEnd() {
	c := dial()
	start := time.Now()
	fmt.Fprint(c, "anybody?")
	c.CloseWrite()
	fmt.Println("ready")
	got, err := io.ReadAll(c)
	fmt.Printf("%q %v %.0f\n", got, err != nil, time.Since(start).Seconds())
}

// leaveOpen exits with n connections open that nobody answers.
func leaveOpen(a []string) {
	for range number(a[1]) {
		fmt.Fprint(dial(), "hello?")
	}
	os.Exit(number(a[0]))
}

// reset breaks n connections off when both sides wait for the other to read, then makes
// one whole.
func reset(n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			c := dial()
			c.SetReadBuffer(1 << 14)
			var err error
			for block := make([]byte, 1<<16); err == nil; _, err = c.Write(block) {
				c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			}
			c.SetLinger(0)
			c.Close()
		})
	}
	all.Wait()
	roundTrips(1, 1000)
}

// flood never stops sending, nor reading.
func flood() {
	for range 8 {
		c := dial()
		go io.Copy(c, &pattern{1, 1 << 60})
		go io.Copy(io.Discard, c)
	}
	select {}
}

// bombAndFlood keeps init as busy as it can while a fork bomb works, then exits.
func bombAndFlood(a []string) {
	if _, err := os.StartProcess("/probe", []string{"probe", "flood"}, &os.ProcAttr{}); err != nil {
		panic(err)
	}
	time.Sleep(100 * time.Millisecond)
	bomb(a)
}

func second[T any](_ T, err error) error { return err }
