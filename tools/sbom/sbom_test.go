package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestABinaryIsTakenApart(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var once, twice bytes.Buffer
	if err := write(&once, "v1", []string{self, self}); err != nil {
		t.Fatal(err)
	}
	if err := write(&twice, "v1", []string{self, self}); err != nil || once.String() != twice.String() {
		t.Errorf("the same binary gives other bytes (%v)", err)
	}
	var doc document
	if err := json.Unmarshal(once.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Format != "CycloneDX" || doc.Metadata.Timestamp != "2023-11-14T22:13:20Z" || doc.Metadata.Component.Version != "v1" {
		t.Errorf("the head is %q %+v", doc.Format, doc.Metadata)
	}
	std := func(c component) bool { return c.PURL == "pkg:golang/std@"+runtime.Version() }
	if first := slices.IndexFunc(doc.Components, std); first < 0 || slices.ContainsFunc(doc.Components[first+1:], std) {
		t.Errorf("the standard library isn't there once: %s", once.String())
	}
	if file := doc.Components[0]; file.Type != "file" || len(file.Hashes) != 1 || len(file.Hashes[0].Content) != 64 {
		t.Errorf("the binary is %+v", file)
	}
}

func TestWhatIsNoGoProgramIsRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, binary := range []string{text, text + "-that-is-not-there"} {
		if err := write(&bytes.Buffer{}, "v1", []string{binary}); err == nil {
			t.Errorf("%s is taken", binary)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := write(&bytes.Buffer{}, "v1", nil); err == nil {
		t.Error("a time that is none is taken")
	}
}
