// Command bench times aod beside plain `docker run` doing the same work with the same
// image, and a server that remembers many runs beside one that remembers few, in
// interleaved pairs, so that what else the machine does hits both alike. `make bench`
// runs it.
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
)

// maker is a row that can be asked for by name.
type maker struct {
	name string
	make func(*bench, context.Context) (row, error)
}

var makers = []maker{
	{"small", (*bench).smallJob},
	{"files", (*bench).largeFiles},
	{"http", (*bench).overHTTP},
	{"submit", (*bench).submitAmongMany},
	{"list", (*bench).listAmongMany},
	{"handoff", (*bench).handOver},
	{"carry", (*bench).carryFiles},
	{"au", (*bench).agenticUnit},
}

func main() {
	pairs := flag.Int("pairs", 30, "pairs to time for each row")
	aod := flag.String("aod", "bin/aod", "the aod to time")
	rows := flag.String("rows", strings.Join(names(), ","), "the rows to time, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *aod, *pairs, strings.Split(*rows, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names() []string {
	var all []string
	for _, m := range makers {
		all = append(all, m.name)
	}
	return all
}

func run(ctx context.Context, aod string, pairs int, wanted []string) (err error) {
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("there is no row %q: the rows are %q", name, names())
		}
	}
	b := &bench{}
	if b.aod, err = filepath.Abs(aod); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "aod-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	fmt.Printf("%d interleaved pairs a row (list: ten times as many, carry: a fifth); milliseconds, median (p95)\n\n", pairs)
	fmt.Println("| work | aod | beside | ratio of medians | target |")
	fmt.Println("|---|---|---|---|---|")
	for _, m := range makers {
		if !slices.Contains(wanted, m.name) {
			continue
		}
		if err := b.time(ctx, m, pairs); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for _, note := range b.notes {
		fmt.Printf("\n%s\n", note)
	}
	return nil
}

// bench is what the rows share.
type bench struct {
	aod    string // the program
	dir    string // a temporary directory
	stores *stores
	notes  []string // below the table
}

func (b *bench) time(ctx context.Context, m maker, pairs int) (err error) {
	row, err := m.make(b, ctx)
	if err != nil {
		return err
	}
	if row.close != nil {
		defer func() { err = errors.Join(err, row.close()) }()
	}
	result, err := row.measure(ctx, pairs)
	if err != nil {
		return err
	}
	fmt.Println(result)
	if row.note != nil {
		b.notes = append(b.notes, row.note())
	}
	return nil
}
