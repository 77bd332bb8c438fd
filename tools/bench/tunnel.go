package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

const (
	tunnelsEach = 50        // of one turn
	tunnelBytes = 256 << 20 // that each turn fetches through one

	directLine = "without a tunnel, from this machine (Python)"
	throughAOD = "through a tunnel, from a sandbox (Python)"
)

// tunnelLogic opens connections, through the proxy where there is one, says the first message of
// TLS, and hears a byte. Then it fetches much.
const tunnelLogic = `import json
import socket
import ssl
import sys
import time

into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
try:
    ssl.create_default_context().wrap_bio(into, out, server_hostname="bench.example").do_handshake()
except ssl.SSLWantReadError:
    HELLO = out.read()


def opened(host: str, port: int, authority: str) -> socket.socket:
    line = socket.create_connection((host, port))
    if authority:
        line.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += line.recv(4096)
        if b" 200 " not in answer:
            raise RuntimeError(answer)
    line.sendall(HELLO)
    line.recv(1)
    return line


def measure(host: str, port: int, authority: str, n: int, size: int) -> dict:
    taken = []
    for _ in range(n):
        began = time.perf_counter()
        line = opened(host, port, authority)
        taken.append((time.perf_counter() - began) * 1000)
        line.close()
    line = opened(host, port, authority)
    room, got, began = memoryview(bytearray(1 << 20)), 0, time.perf_counter()
    line.sendall(b"G")
    while got < size:
        got += line.recv_into(room)
    return {"times": taken, "rate": size / (time.perf_counter() - began)}


def execute(payload: dict) -> dict:
    return measure("127.0.0.1", 7070, payload["authority"], payload["n"], payload["size"])


if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    print(json.dumps(measure(host, int(port), "", int(sys.argv[2]), int(sys.argv[3]))))
`

// tunnels holds a tunnel from a sandbox against a connection of this machine to the same server:
// until the first byte came, and how much goes through.
func (b *bench) tunnels(ctx context.Context) (part, error) {
	address, err := b.source(ctx)
	if err != nil {
		return part{}, err
	}
	_, port, _ := net.SplitHostPort(address) // it is an address
	authority := "bench.example:" + port
	j, err := b.newJob(ctx, program{
		name: "tunnel", input: `{"authority": "", "n": 0, "size": 0}`, logic: tunnelLogic,
		agent:  "egress: [" + authority + "]\n",
		schema: `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	})
	if err != nil {
		return part{}, err
	}
	s, err := b.serve(ctx,
		serving{more: "policy: {egress: [" + authority + "]}\negress_private: [bench.example=127.0.0.1]\n"})
	if err != nil {
		return part{}, err
	}
	fromHost := func() ([]byte, error) {
		return exec.CommandContext(ctx, "python3", filepath.Join(j.capsule, "src", "main.py"), address,
			fmt.Sprint(tunnelsEach), fmt.Sprint(tunnelBytes)).Output()
	}
	fromSandbox := func() ([]byte, error) {
		record, err := s.submit(ctx,
			fmt.Sprintf(`{"unit": "bench-tunnel", "input": {"authority": %q, "n": %d, "size": %d}}`, authority,
				tunnelsEach, tunnelBytes), waiting, http.StatusOK)
		if err == nil && record.Outcome != api.Success {
			err = errors.New(record.Error.Message)
		}
		return record.Output, err
	}
	each, rates := []series{{name: directLine}, {name: throughAOD}}, [2]float64{}
	for turn := range max(b.pairs/6, 3) {
		for i, take := range []func() ([]byte, error){fromHost, fromSandbox} {
			output, err := take()
			if err != nil {
				return part{}, err
			}
			var told struct {
				Times []float64
				Rate  float64
			}
			if err := json.Unmarshal(output, &told); err != nil {
				return part{}, err
			}
			for _, ms := range told.Times {
				each[i].add(turn, inMilliseconds(ms))
			}
			rates[i] = max(rates[i], told.Rate)
		}
	}
	made := group{beside: []string{directLine}}.part(each, len(each[0].times))
	made.notes = append(made.notes,
		fmt.Sprintf("Until the first byte came. Of %d MiB at once, the best turn carried %.0f MiB a second without "+
			"a tunnel, %.0f through one.", tunnelBytes>>20, rates[0]/(1<<20), rates[1]/(1<<20)))
	made.goals = []goal{
		atMost("a tunnel's set-up, p50 in ms", each[1].quantile(0.5).Seconds()*1000, 5),
		atMost("what a tunnel carries: times that a connection without one is faster", rates[0]/rates[1], 1.43),
	}
	return made, nil
}

// source is a server that says a byte to the first that comes, and much to the letter G. It
// returns its address.
func (b *bench) source(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	b.close = append(b.close, listener.Close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go pour(conn)
		}
	}()
	return listener.Addr().String(), nil
}

func pour(conn net.Conn) {
	defer func() { _ = conn.Close() }() // who asks has what it wants, or has gone
	first := make([]byte, 64<<10)
	if _, err := conn.Read(first); err != nil {
		return
	}
	_, _ = io.WriteString(conn, "!") // likewise
	for {
		n, err := conn.Read(first)
		if err != nil {
			return
		}
		if strings.HasSuffix(string(first[:n]), "G") {
			break
		}
	}
	much := make([]byte, 1<<20)
	for range tunnelBytes / len(much) {
		if _, err := conn.Write(much); err != nil {
			return
		}
	}
	_, _ = io.Copy(io.Discard, conn) // until it is closed
}
