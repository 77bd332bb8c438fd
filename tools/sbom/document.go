package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// document is a CycloneDX 1.5 document, as far as we fill it in.
type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func newDocument(version, epoch string) (*document, error) {
	at, err := timeOf(epoch)
	if err != nil {
		return nil, err
	}
	program := component{Type: "application", Name: "aod", Version: version}
	return &document{
		Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: metadata{Timestamp: at, Component: program},
	}, nil
}

// add adds a binary with its digest, and the modules that it is made of.
func (d *document) add(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(binary) //nolint:gosec // G703: whoever starts the command names it
	if err != nil {
		return err
	}
	digest := sha256.Sum256(raw)
	d.Components = append(d.Components, component{
		Type: "file", Name: filepath.Base(binary),
		Hashes:     []hash{{"SHA-256", hex.EncodeToString(digest[:])}},
		Properties: []property{{"go:version", info.GoVersion}},
	})
	d.module(&debug.Module{Path: "std", Version: info.GoVersion})
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		d.module(dep)
	}
	return nil
}

// module adds a module once, however many binaries have it.
func (d *document) module(m *debug.Module) {
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	if !slices.ContainsFunc(d.Components, func(known component) bool { return known.PURL == c.PURL }) {
		d.Components = append(d.Components, c)
	}
}

func (d *document) sort() {
	slices.SortFunc(d.Components, func(a, b component) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}
