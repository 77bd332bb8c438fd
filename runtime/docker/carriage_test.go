package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// An image goes from one engine to another: here both are the same one, which loses it in between.
func TestAnImageIsSavedAndLoaded(t *testing.T) {
	engine, ctx := dockertest.Require(t), t.Context()
	carrier := engine.Carrier()
	ref := fmt.Sprintf("aod.test/carried:%d", time.Now().UnixNano())
	t.Cleanup(func() {
		for _, name := range []string{ref, ref + "-too"} {
			if err := engine.RemoveImage(context.Background(), name); err != nil {
				t.Error(err)
			}
		}
		removeImages(t, engine)
	})
	id, err := engine.Build(ctx, runtime.BuildSpec{
		Tags: []string{ref}, Labels: testLabels, WriteContext: tarOf("Dockerfile", "FROM scratch\nCOPY Dockerfile /\n"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := carrier.Save(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(saved)
	if err = errors.Join(err, saved.Close()); err != nil {
		t.Fatal(err)
	}
	if err := engine.RemoveImage(ctx, ref); err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string][]byte{"cut": raw[:len(raw)/2], "empty": nil} {
		if err := carrier.Load(ctx, ref, bytes.NewReader(broken)); err == nil {
			t.Errorf("%s: it is loaded", name)
		}
	}
	if err := carrier.Load(ctx, "aod.test/other:1", bytes.NewReader(raw)); !fault.Is(err, fault.Conflict) {
		t.Errorf("as another one: %v", err)
	}
	if _, err := engine.Image(ctx, ref); !fault.Is(err, fault.NotFound) {
		t.Fatalf("it is there: %v", err)
	}
	if err := carrier.Load(ctx, ref, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if image, err := engine.Image(ctx, ref); err != nil || image.ID != id {
		t.Errorf("%+v, %v, want %s", image, err, id)
	}
	if err := carrier.TagImage(ctx, ref, ref+"-too"); err != nil {
		t.Error(err)
	}
	if image, err := engine.Image(ctx, ref+"-too"); err != nil || image.ID != id {
		t.Errorf("by its second name %+v, %v", image, err)
	}
	if _, err := carrier.Save(ctx, "aod.test/nothing:1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("what isn't there: %v", err)
	}
}
