package au

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

func TestAProgramAloneHasNoSource(t *testing.T) {
	data := t.TempDir()
	env := &cli.Env{Data: data}
	if got := sourceOf(env, &capsule.Capsule{Dir: filepath.Join(data, "au", "0123")}); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestStdinMayBeADeviceOrAPipe(t *testing.T) {
	dir := t.TempDir()
	regular, pipe := filepath.Join(dir, "regular"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(regular, []byte("text"), 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("through a pipe"), 0) }() // it ends when the pipe is read
	for from, want := range map[string]string{os.DevNull: "", pipe: "through a pipe"} {
		got, err := receiveStdin(&cli.Env{}, auRunFlags{stdin: from}, filepath.Join(t.TempDir(), "stdin"))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(got); err != nil || string(raw) != want || got == from {
			t.Errorf("of %s it got %q, %v", from, raw, err)
		}
	}
	for _, as := range []string{regular, dir, filepath.Join(dir, "none")} {
		if got, err := receiveStdin(&cli.Env{}, auRunFlags{stdin: as}, filepath.Join(dir, "copy")); got != as || err != nil {
			t.Errorf("%s is read as %q, %v", as, got, err)
		}
	}
}
