package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/agent-on-demand/aod/runtime"
)

// shell is a Program that knows the scripts of the suite and no others.
func shell(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	switch spec.Cmd[0] {
	case scriptGreet:
		io.WriteString(stdout, "out\n")
		io.WriteString(stderr, "err\n")
		return 7
	case scriptFlood:
		flood(ctx, stdout, 'o')
		flood(ctx, stderr, 'e')
	case scriptPolite:
		io.WriteString(stdout, "ready\n")
		select {
		case <-Terminated(ctx):
			return 3
		case <-ctx.Done():
		}
	case scriptTalk:
		io.WriteString(stdout, "ready\n")
		io.WriteString(stderr, "early\n")
		select {
		case <-Terminated(ctx):
			io.WriteString(stdout, "bye\n")
			io.WriteString(stderr, "late\n")
			return 3
		case <-ctx.Done():
		}
	case scriptDeaf:
		io.WriteString(stdout, "ready\n")
		<-ctx.Done()
	case scriptSleep:
		<-ctx.Done()
	case scriptSmall:
	default:
		return 127
	}
	return 0
}

func flood(ctx context.Context, w io.Writer, c byte) {
	chunk := bytes.Repeat([]byte{c}, 64<<10)
	for written := 0; written < floodBytes && ctx.Err() == nil; written += len(chunk) {
		w.Write(chunk)
	}
}

// shellStep does the RUN commands of the suite, for Fake.RunStep.
func shellStep(ctx context.Context, command string, output io.Writer) int {
	command, _, _ = strings.Cut(command, " # ")
	lines, code := 0, 0
	switch command {
	case runLines:
		lines = 3
	case runFail:
		lines, code = 30, 7
	case runSleep:
		<-ctx.Done()
	default:
		code = 127
	}
	for i := range lines {
		fmt.Fprintf(output, "line %d\n", i+1)
	}
	return code
}
