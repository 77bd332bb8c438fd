package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os/exec"
	goruntime "runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api"
)

// durability is a run with JSON alone, and one with a file in and a file out, beside the same where
// no sync does anything: neither those of files nor those of the database.
func (b *bench) durability(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	if _, err := b.large(ctx); err != nil { // its unit, which copies
		return part{}, err
	}
	const copies = "bench-large"
	contentType, form, err := formOf(copies, strings.Repeat("x", 64<<10))
	if err != nil {
		return part{}, err
	}
	var ways []*way
	for _, s := range []struct {
		name string
		with serving
	}{{"", serving{}}, {", where syncs do nothing", serving{noSync: true}}} {
		stock, err := b.stockOf(ctx, s.with, 2, "", smallUnit, copies)
		if err != nil {
			return part{}, err
		}
		submit := func(ctx context.Context) (record api.Record, err error) {
			_, answer, err := stock.sendAs(ctx, http.MethodPost, "/v1/runs"+waiting, contentType, form, http.StatusOK)
			if err != nil {
				return record, err
			}
			return record, json.Unmarshal(answer, &record)
		}
		if err := stock.teachBoth(ctx, submit); err != nil {
			return part{}, err
		}
		ways = append(ways, stock.submission(apiWarm+s.name, smallRun),
			submission("API, warm, 64 KiB in and out"+s.name, stock.after, submit))
	}
	g := group{ways: ways, beside: []string{ways[2].name, ways[3].name}, times: 7}
	return g.measure(ctx, b.pairs)
}

// teachBoth shows the pool that the programs of both units ask for their runs.
func (k *stock) teachBoth(ctx context.Context, submit func(context.Context) (api.Record, error)) error {
	record, err := k.submit(ctx, smallRun, waiting, http.StatusOK)
	if err != nil {
		return err
	}
	copied, err := submit(ctx)
	if err != nil {
		return err
	}
	k.loaded = true
	return k.after(ctx, record.ID, copied.ID)
}

// formOf is a submission with a file.
func formOf(unit, content string) (contentType, body string, err error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, fileErr := w.CreateFormFile("data", "data.bin")
	if fileErr == nil {
		_, fileErr = file.Write([]byte(content))
	}
	err = errors.Join(w.WriteField("unit", unit), fileErr, w.Close())
	return w.FormDataContentType(), form.String(), err
}

// startWithoutSyncs starts a program whose fsync, fdatasync and syncfs do nothing and succeed: a
// filter of the kernel's answers them. It belongs to a thread that starts nothing else.
func startWithoutSyncs(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // and ends with the thread
		err := ignoreSyncs()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

func ignoreSyncs() error {
	const load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{{Code: load}} // the call's number
	for _, number := range []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS} {
		// 0: done
		filter = append(filter, unix.SockFilter{Code: equal, Jf: 1, K: number},
			unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO})
	}
	filter = append(filter, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // a handful
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // how seccomp takes it
	if errno != 0 {
		return fmt.Errorf("filter of syncs: %w", errno)
	}
	return nil
}
