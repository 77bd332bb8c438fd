package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var example = pack{root: os.DirFS("../.."), version: "v1.2.3", arch: "amd64", program: []byte("a program"), at: time.Unix(1_700_000_000, 0)}

func TestTheSameInputGivesTheSamePackage(t *testing.T) {
	once, err := example.bytes()
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := example.bytes(); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("%d and %d bytes, %v", len(once), len(twice), err)
	}
}

// The package manager itself reads it where there is one.
func TestDpkgReadsThePackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb here")
	}
	raw, err := example.bytes()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "aod.deb")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	fields, err := exec.CommandContext(t.Context(), "dpkg-deb", "--field", file, "Package", "Version", "Architecture").CombinedOutput()
	if want := "Package: aod\nVersion: 1.2.3\nArchitecture: amd64\n"; err != nil || string(fields) != want {
		t.Errorf("%v: %s", err, fields)
	}
	files, err := exec.CommandContext(t.Context(), "dpkg-deb", "--contents", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, files)
	}
	for _, name := range []string{"./usr/bin/aod", "./usr/lib/systemd/system/aod.service", "./etc/aod/aod.yaml", "./usr/share/doc/aod/copyright", "./usr/share/doc/aod/docs/server.md"} {
		if !strings.Contains(string(files), " "+name+"\n") {
			t.Errorf("it has no %s", name)
		}
	}
}

func TestEachFileIsRootsAndAfterItsDirectory(t *testing.T) {
	raw, _, err := example.data()
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"./": true}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Dir(strings.TrimSuffix(h.Name, "/")) + "/"; dir != "./" && !seen["./"+dir] {
			t.Errorf("%s comes before its directory", h.Name)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(example.at) || h.Mode&0o022 != 0 {
			t.Errorf("%s: %+v", h.Name, h)
		}
		seen[h.Name] = true
	}
}

func TestAVersionBecomesOneOfDebians(t *testing.T) {
	for given, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3": "1.2.3", "v1.2.3-rc1": "1.2.3~rc1", "v1.2.3-4-g0123abc": "1.2.3+4.g0123abc",
		"v1.2.3-rc1-4-g0123abc": "1.2.3~rc1+4.g0123abc", "0123abc": "0~g0123abc",
	} {
		if got, err := debianVersion(given); err != nil || got != want {
			t.Errorf("%s became %q, %v, want %s", given, got, err, want)
		}
	}
	for _, bad := range []string{"", "v", "release", "v1.2.3-dirty", "1.2.3\nDepends: x", "v1.2.3-beta"} {
		if got, err := debianVersion(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
