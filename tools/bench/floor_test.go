package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatAContainerTakesIsRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"memory.current": "4096\n", "memory.stat": "file 10\nanon 2048\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readCharge(dir, "memory.current", "anon"); err != nil || got != (charge{anonymous: 2048, all: 4096}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readCharge(dir, "memory.current", "total_rss"); err == nil {
		t.Error("a field that isn't there is taken for 0")
	}
}

func TestAnImagesUserIsRunAs(t *testing.T) {
	for name, want := range map[string][2]int{"65532:65533": {65532, 65533}, "7": {7, 0}, "": {0, 0}} {
		if got := userOf(name); got["uid"] != want[0] || got["gid"] != want[1] {
			t.Errorf("%q: %v", name, got)
		}
	}
}
