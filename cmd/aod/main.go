// Command aod runs agents as capsules: each in a fresh, sealed container, with a typed contract on both sides.
// See `aod --help`.
//
// It wires all together: a package a noun lies below it. It must not know Docker's types.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
	"github.com/agent-on-demand/aod/runtime/line"
	"github.com/agent-on-demand/aod/runtime/pid1"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// main is three programs: in a sandbox that was started without the small ones, this one stands
// in for them.
func main() {
	switch startedAs() {
	case initreport.InitPath:
		syscall.Exit(pid1.Main(os.Args))
	case tunnel.Program:
		os.Exit(line.Main())
	}
	initbin.OfferSelf()
	os.Exit(mainCode())
}

func startedAs() string {
	if len(os.Args) == 0 {
		return ""
	}
	return os.Args[0]
}

// mainCode runs the program. The first signal ends the work in progress. A second one ends the
// process, and the next start cleans up behind it.
func mainCode() int {
	ctx, end := untilSignal()
	defer end()
	signal.Ignore(syscall.SIGPIPE) // the clean-up must run even if the reader of our output has gone
	app := newApp(os.Stdin, ui.NewOutput(os.Stdout), ui.NewOutput(os.Stderr))
	return app.run(ctx, os.Args[1:])
}

// untilSignal returns a context that ends with the first signal. Who sees its end can trust that
// a second signal isn't caught any more.
func untilSignal() (ctx context.Context, end context.CancelFunc) {
	ctx, end = context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		end()
	}()
	return ctx, end
}
