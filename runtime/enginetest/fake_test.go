package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

func TestFakeConforms(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		fake := NewFake(shell)
		fake.RunStep = shellStep
		fake.AddImage(runtime.Image{Tags: []string{"sh:latest"}, OS: "linux"})
		return Harness{Engine: fake, Image: "sh"}
	})
}

// Nobody has the streams of an answer that got lost: a program writes on, as behind a broken connection.
func TestAProgramGoesOnWhenTheAnswerToItsReaderGetsLost(t *testing.T) {
	fake := NewFake(func(_ context.Context, _ runtime.ContainerSpec, stdout, _ io.Writer) int {
		fmt.Fprintln(stdout, "a line")
		return 0
	})
	fake.AddImage(runtime.Image{Tags: []string{"sh:latest"}, OS: "linux"})
	lost := errors.New("lost")
	fake.Lost = func(method string) error { return map[string]error{"Attach": lost, "Logs": lost}[method] }
	id, err := fake.Create(t.Context(), runtime.ContainerSpec{Image: "sh", LogBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for method, read := range map[string]func(context.Context, string) (*runtime.Streams, error){
		"Attach": fake.Attach, "Logs": fake.Logs,
	} {
		if _, err := read(t.Context(), id); !errors.Is(err, lost) {
			t.Errorf("%s: %v", method, err)
		}
	}
	exits, err := fake.NextExit(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if exit := <-exits; exit != (runtime.Exit{}) {
		t.Errorf("the end is %+v", exit)
	}
}
