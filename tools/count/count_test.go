package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCount(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"a/a.go": {Data: []byte("// Package a is documented.\npackage a\n\n// F does it.\nfunc F() {\n\tg(1)\n\tg(2)\n}\n\n" +
			"func g(int) {}\n\ntype i interface {\n\tM()\n\tN()\n}\n")},
		"a/a_test.go":                 {Data: []byte("package a\n\n\n")},
		"atest/lib.go":                {Data: []byte("package atest\n")},
		"internal/testing/kit/kit.go": {Data: []byte("package kit\n")},
		"testkit/kit.go":              {Data: []byte("package testkit\n")},
		"fuzzbound/b.go":              {Data: []byte("package fuzzbound\n")},
		"a/testdata/x.go":             {Data: []byte("package x\n")},
		"tools/t/main.go":             {Data: []byte("package main\n")},
	}
	tally := newTally()
	if err := tally.tree(tree); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := tally.print(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"a 15 3 0.20",
		"atest 0 1 -",
		"internal/testing/kit 0 1 -",
		"product code 15 lines, tests 7 (0.47)",
		"functions 2, median 0, p90 0, p99 0, max 2",
		"interfaces 1, median 2",
		"comments 13 % of lines",
		"exported functions 1, 100 % documented",
		"a/a.go:F 2",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "tools") || strings.Contains(text, "testdata") {
		t.Errorf("tools and test data are counted:\n%s", out.String())
	}
}
