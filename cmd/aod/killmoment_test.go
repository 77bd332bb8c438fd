package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/cmd/aod/upload"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

// disturb kills the server, in each round at another kind of moment.
func (c *killing) disturb() {
	c.seen = nil
	switch c.round % 6 {
	case 1:
		c.killEarly()
	case 2:
		c.ready()
		c.killWhileItReceives()
	case 4:
		c.ready()
		c.killWhileItBuilds()
	case 5:
		c.ready()
		c.release(len(c.orders))
		testkit.Eventually(c.t, "a container is there", func() bool { return c.contained || len(c.containers()) > 0 })
		c.look()
		c.kill()
	default:
		c.ready()
		c.pause(50*time.Millisecond, 800*time.Millisecond)
		c.look()
		c.kill()
	}
}

// pause lets time pass: what is tested are random moments.
func (c *killing) pause(least, most time.Duration) {
	time.Sleep(least + time.Duration(c.dice.Int64N(int64(most-least))))
}

// killEarly kills a server that may not even listen.
func (c *killing) killEarly() {
	c.pause(0, 150*time.Millisecond)
	c.kill()
	if !strings.Contains(c.lastLog(), "aod serves on") {
		c.early++
	}
}

// lastLog is what the newest process has said.
func (c *killing) lastLog() string { return c.log()[c.logged:] }

// killWhileItReceives kills it when half of an upload is on its disk. The same order is
// submitted by its key afterwards.
func (c *killing) killWhileItReceives() {
	o := &order{
		kind: "uploading", outcome: api.Success, work: work{Mark: len(c.orders)},
		content: strings.Repeat("uploaded while the server was killed\n", 30_000),
	}
	path := filepath.Join(c.t.TempDir(), "doc")
	write(c.t, o.content, path)
	o.Submission = client.Submission{
		Unit: "survivor", Input: o.work.input(), Key: fmt.Sprintf("upload-%d", c.round),
		Files: []client.InputFile{{Field: "doc", Path: path}},
	}
	ended := make(chan error, 1)
	hold := make(chan struct{})
	go func() { ended <- c.drip(o, hold) }()
	testkit.Eventually(c.t, "half of the upload is there", func() bool {
		files, _ := filepath.Glob(filepath.Join(c.home(), "spool", "*", "*"))
		return len(files) > 0
	})
	c.kill()
	close(hold)
	if err := <-ended; err == nil {
		c.t.Error("an upload was accepted of which half was sent")
	}
	c.orders = append(c.orders, o)
}

// drip sends half of an order's file, and the rest when it is no longer held.
func (c *killing) drip(o *order, hold <-chan struct{}) error {
	body, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		err := errors.Join(form.WriteField("unit", o.Unit), form.WriteField("input", string(o.Input)))
		part, failed := form.CreateFormFile("doc", "doc")
		if err = errors.Join(err, failed); err == nil {
			_, err = io.WriteString(part, o.content[:len(o.content)/2])
		}
		<-hold
		if err == nil {
			_, err = io.WriteString(part, o.content[len(o.content)/2:])
		}
		_ = w.CloseWithError(errors.Join(err, form.Close())) // never fails
	}()
	request, err := http.NewRequest(http.MethodPost, c.url()+"/v1/runs", body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Idempotency-Key", o.Key)
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		response.Body.Close()
	}
	return err
}

// killWhileItBuilds kills it during the upload of a unit, which is uploaded again after
// that, and run.
func (c *killing) killWhileItBuilds() {
	dir := filepath.Join(c.t.TempDir(), "late")
	writeWorker(c.t, dir, "late", unique()+"RUN sleep 1\n")
	ended := make(chan error, 1)
	go func() { ended <- c.put(dir) }()
	c.pause(100*time.Millisecond, 900*time.Millisecond)
	c.kill()
	if err := <-ended; err == nil {
		c.t.Log("the unit was built before the kill")
	}
	o := &order{kind: "uploaded", outcome: api.Success, work: work{Mark: len(c.orders)}, unit: dir}
	o.Submission = client.Submission{Unit: "late", Input: o.work.input(), Key: fmt.Sprintf("late-%d", c.round)}
	c.orders = append(c.orders, o)
}

// put uploads a directory as `aod run DIR` does.
func (c *killing) put(dir string) error {
	a := newApp(nil, ui.NewOutput(os.Stdout), ui.NewOutput(os.Stderr))
	a.env.Quiet = true
	_, err := upload.Unit(context.Background(), a.env, c.client, dir, true)
	return err
}

// putAlways uploads a directory however long it takes.
func (c *killing) putAlways(ctx context.Context, dir string) error {
	for {
		err := c.put(dir)
		if !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// cancel asks for a run's end until that is heard.
func (c *killing) cancel(ctx context.Context, id string) error {
	for {
		_, err := c.client.Runs.Cancel(ctx, id, "as it was ordered")
		if !fault.Is(err, fault.Unavailable) {
			if fault.Is(err, fault.Conflict) {
				return nil // an answer got lost
			}
			return err
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// awaitRunning returns when a run is running, as far as a server can be asked.
func (c *killing) awaitRunning(ctx context.Context, id string) {
	for ctx.Err() == nil {
		if record, err := c.client.Runs.Get(ctx, id); err == nil && running(record) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// look remembers which runs are running, where a server answers.
func (c *killing) look() {
	c.seen = map[string]bool{}
	for run, err := range c.client.Runs.List(context.Background(), api.Filter{States: []api.State{api.Running}}) {
		if err == nil {
			c.seen[run.ID] = true
		}
	}
}

// take takes its container away from a run that runs on while the server is dead.
func (c *killing) take() {
	containers := c.containers()
	c.contained = c.contained || len(containers) > 0
	for _, ref := range containers {
		o := c.orderOf(ref.Labels[runtime.LabelRun])
		if o == nil || o.kind != "long" || o.taken > 0 || !c.seen[o.id] || ref.State != runtime.StatusRunning {
			continue
		}
		if err := c.engine.Remove(context.Background(), ref.ID); err != nil {
			c.t.Errorf("take a container away: %v", err)
		}
		o.taken++
		return
	}
}

func (c *killing) orderOf(run string) *order {
	for _, o := range c.orders {
		if o.known() == run {
			return o
		}
	}
	return nil
}
