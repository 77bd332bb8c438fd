// Command bench times aod beside plain `docker run` and beside the least that the same
// work takes (runc alone, a program of this machine), a server that remembers many runs
// beside one that remembers few, and what containers that wait for runs are worth and
// take. What is compared is done in turn within one run, so that what else the machine
// does hits all alike. `make bench` has it write docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maker is a row of the page that can be asked for by name.
type maker struct {
	name    string
	chapter string
	title   string
	make    func(*bench, context.Context) (part, error)
}

var makers = []maker{
	{"small", latency, "A small Python job", (*bench).smallJob},
	{"handoff", latency, "A capsule calls a capsule", (*bench).handOver},
	{"worker", latency, "A small job at a worker", (*bench).farJob},
	{"farcall", latency, "A capsule calls one at another worker", (*bench).farHandOver},
	{"farask", models, "A request for a model from a worker", (*bench).farAsk},
	{"farslots", throughput, "Three workers beside one", (*bench).farSlots},
	{"farmemory", memory, "Idle workers", (*bench).farMemory},
	{"flow", latency, "Ten jobs in a row", (*bench).tenInARow},
	{"decide", latency, "Nodes that decide", (*bench).decides},
	{"mcp", latency, "A tool of the Model Context Protocol", (*bench).modelContext},
	{"code", latency, "A program for `aod.code`", (*bench).programs},
	{"tools", latency, "200 units as tools", (*bench).toolsListed},
	{"a2a", latency, "A task of the Agent2Agent protocol", (*bench).tasks},
	{"a2aten", latency, "Ten tasks at once", (*bench).tenTasks},
	{"a2atold", latency, "Being told of a task", (*bench).toldTasks},
	{"a2alist", latency, "Listing tasks, with many remembered", (*bench).listTasks},
	{"au", latency, "An Agentic Unit, 1 MiB of stdin", (*bench).agenticUnit},
	{"agent", latency, "A wrapped agent", (*bench).wrappedAgent},
	{"turn", latency, "A turn with an agent that lives on", (*bench).liveTurn},
	{"workspace", latency, "A project of 10,000 files", (*bench).workOnProject},
	{"files", latency, "100 MiB in and 100 MiB out", (*bench).largeFiles},
	{"carry", latency, "100 MiB to a capsule and back", (*bench).carryFiles},
	{"durable", latency, "What being on the disk costs", (*bench).durability},
	{"profile", latency, "What the seccomp profile costs", (*bench).profileCost},
	{"submit", latency, "Accepting a run, with many remembered", (*bench).submitAmongMany},
	{"list", latency, "Listing runs, with many remembered", (*bench).listAmongMany},
	{"throughput", throughput, "Jobs a second", (*bench).jobsASecond},
	{"tunnel", throughput, "A tunnel to a host by name", (*bench).tunnels},
	{"refill", pools, "Refill", (*bench).refill},
	{"burst", pools, "A burst of 50", (*bench).bursts},
	{"memory", memory, "Server and waiting containers", (*bench).memoryTaken},
	{"ask", models, "A request for a model", (*bench).askModel},
	{"handler", models, "The gateway's own time", (*bench).ownTime},
	{"chunks", models, "50 streams of 200 chunks a second", (*bench).streamChunks},
	{"calls", models, "Requests a second, 32 at once", (*bench).modelCalls},
	{"open", models, "Memory of requests that are under way", (*bench).modelMemory},
	{"first", models, "An agent's first request after its warm start", (*bench).firstRequest},
	{"token", models, "The first words of an answer", (*bench).firstWords},
	{"slots", models, "20 runs that wait for a slow model", (*bench).lentSlots},
	{"shares", models, "60 requests a minute for 5 runs", (*bench).fairShares},
	{"upstream", latency, "A request to an upstream", (*bench).askUpstream},
	{"freeze", memory, "Freezing a waiting container", (*bench).freezing},
}

func main() {
	pairs := flag.Int("pairs", 30, "how often a row's ways are timed; some rows take more or fewer turns, see there")
	aod := flag.String("aod", "bin/aod", "the aod to time")
	rows := flag.String("rows", strings.Join(names(), ","), "the rows to time, with commas between them")
	file := flag.String("write", "", "write the page to this file, else it is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	text, err := run(ctx, *aod, *pairs, strings.Split(*rows, ","))
	stop()
	if err == nil {
		err = deliver(text, *file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func deliver(text, file string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func names() []string {
	var all []string
	for _, m := range makers {
		all = append(all, m.name)
	}
	return all
}

// run times the wanted rows and returns the page of them.
func run(ctx context.Context, aod string, pairs int, wanted []string) (text string, err error) {
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return "", fmt.Errorf("there is no row %q: the rows are %q", name, names())
		}
	}
	b := &bench{pairs: max(pairs, 1)}
	if b.aod, err = filepath.Abs(aod); err != nil {
		return "", err
	}
	if b.dir, err = os.MkdirTemp("", "aod-bench-"); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	p := page{facts: b.machine(ctx, time.Now()), pairs: b.pairs}
	for _, m := range makers {
		if !slices.Contains(wanted, m.name) {
			continue
		}
		made, err := b.measure(ctx, m)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
		p.add(m.chapter, made)
	}
	return p.String(), nil
}

// bench is what the rows share.
type bench struct {
	aod    string // the program
	dir    string // a temporary directory
	pairs  int
	close  []func() error // what the row at hand has opened
	stores *stores
}

func (b *bench) measure(ctx context.Context, m maker) (made part, err error) {
	began := time.Now()
	fmt.Fprintf(os.Stderr, "%s: ", m.name)
	made, err = m.make(b, ctx)
	for _, undo := range slices.Backward(b.close) {
		err = errors.Join(err, undo())
	}
	b.close = nil
	made.title = m.title
	fmt.Fprintln(os.Stderr, time.Since(began).Round(time.Second))
	return made, err
}
