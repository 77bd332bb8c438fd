package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// kernel is the directory of the package that leads runs.
const kernel = "orchestrator"

// seam is the package by which the kernel knows features.
const seam = kernel + "/feature"

// features are the names, anywhere in a package's path, of what the kernel doesn't know.
var features = []string{"feature", "egress", "upstream", "gateway", "relay", "push"}

// featuresIn returns which packages lie in or below a directory of a feature.
func featuresIn(imports []string) []string {
	return slices.DeleteFunc(slices.Clone(imports), func(pkg string) bool {
		return strings.HasSuffix(pkg, "/"+seam) || !slices.ContainsFunc(strings.Split(pkg, "/"), isFeature)
	})
}

func isFeature(dir string) bool { return slices.Contains(features, dir) }

// foldersOf returns the folders of the root that hold one of these files.
func foldersOf(files []string) []string {
	var folders []string
	for _, file := range files {
		if folder, _, below := strings.Cut(file, "/"); below {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func trackedFiles(ctx context.Context, root string) ([]string, error) {
	return lines(ctx, root, "git", "ls-files")
}

// kernelImports returns the packages of this module that the kernel is made of.
func kernelImports(ctx context.Context, root string) ([]string, error) {
	const ours = "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}"
	return lines(ctx, root, "go", "list", "-deps", "-f", ours, "./"+kernel)
}

// lines returns what a command prints that is run in a directory.
func lines(ctx context.Context, dir, name string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return strings.Fields(string(out)), nil
}
