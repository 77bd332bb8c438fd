package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

func command(ctx context.Context, name string, args ...string) error {
	return fed(ctx, "", name, args...)
}

// fed runs a command with a file as its stdin; "" is none.
func fed(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	if stdin != "" {
		file, err := os.Open(stdin)
		if err != nil {
			return err
		}
		defer file.Close()
		cmd.Stdin = file
	}
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &words
	// What was started in a container would stay there: it comes to its end in a moment.
	cmd.Cancel = func() error { return nil }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, words.String())
	}
	return context.Cause(ctx)
}

func inTurn(steps ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// copying is a step of somebody who does without aod.
func copying(from, to string) func(context.Context) error {
	return func(ctx context.Context) error { return command(ctx, "cp", from, to) }
}

// remove has every turn make its files anew, as every run does.
func remove(paths ...string) func(context.Context) error {
	return func(context.Context) error {
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return nil
	}
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func writeRandom(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	source := rand.NewChaCha8([32]byte{})
	if _, err := io.CopyN(file, source, size); err != nil {
		return err
	}
	return file.Close()
}
