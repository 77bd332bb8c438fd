package container

import (
	"archive/tar"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime"
)

func TestWhichChangesNeedNoBuild(t *testing.T) {
	t.Parallel()
	before := map[string]contextFile{
		"Dockerfile": {kind: tar.TypeReg}, "src/": {kind: tar.TypeDir}, "src/a": {kind: tar.TypeReg, mode: 0o644},
		"b": {kind: tar.TypeReg}, "l": {kind: tar.TypeSymlink},
	}
	for _, c := range []struct {
		name    string
		change  func(map[string]contextFile)
		changed string
		ok      bool
	}{
		{"none", func(map[string]contextFile) {}, "", true},
		{"another content", func(m map[string]contextFile) {
			m["src/a"] = contextFile{kind: tar.TypeReg, mode: 0o644, sum: [32]byte{1}}
		}, "src/a", true},
		{"another mode", func(m map[string]contextFile) { m["src/a"] = contextFile{kind: tar.TypeReg, mode: 0o755} }, "src/a", true},
		{"a new file", func(m map[string]contextFile) { m["src/n"] = contextFile{kind: tar.TypeReg} }, "src/n", true},
		{"several", func(m map[string]contextFile) {
			m["src/n"], m["b"] = contextFile{kind: tar.TypeReg}, contextFile{kind: tar.TypeReg, mode: 1}
		}, "b src/n", true},
		{"one that is gone", func(m map[string]contextFile) { delete(m, "b") }, "", false},
		{"a new directory", func(m map[string]contextFile) { m["d/"] = contextFile{kind: tar.TypeDir} }, "", false},
		{"another link", func(m map[string]contextFile) { m["l"] = contextFile{kind: tar.TypeSymlink, sum: [32]byte{1}} }, "", false},
		{"a file in a link's place", func(m map[string]contextFile) { m["l"] = contextFile{kind: tar.TypeReg} }, "", false},
		{"how it is built", func(m map[string]contextFile) { m["Dockerfile"] = contextFile{kind: tar.TypeReg, sum: [32]byte{1}} }, "", false},
		{"more than can be mounted", func(m map[string]contextFile) {
			for i := range maxPatched + 1 {
				m[strings.Repeat("x", i+1)] = contextFile{kind: tar.TypeReg}
			}
		}, "", false},
	} {
		now := maps.Clone(before)
		c.change(now)
		changed, ok := changedFiles(before, now)
		got := strings.Join(slices.Sorted(maps.Keys(changed)), " ")
		if ok != c.ok || ok && got != c.changed {
			t.Errorf("%s: %q, %v", c.name, got, ok)
		}
	}
}

func TestPatchesAreForgotten(t *testing.T) {
	t.Parallel()
	p := &Patches{}
	p.remember("u", builtImage{image: runtime.Image{ID: "i"}})
	p.forget("u")
	if len(p.images) > 0 {
		t.Error("it is still known")
	}
	(*Patches)(nil).forget("u") // where nobody edits anything
}
