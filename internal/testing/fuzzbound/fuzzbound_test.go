package fuzzbound

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryFuzzTestHasBounds(t *testing.T) {
	targets := 0
	err := filepath.WalkDir("../../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || entry.Name() == "fuzzbound_test.go" {
			return err
		}
		source, err := os.ReadFile(name)
		targets += strings.Count(string(source), "\nfunc Fuzz")
		if strings.Contains(string(source), "f.Fuzz(") {
			t.Errorf("%s calls f.Fuzz: call fuzzbound.Run", name)
		}
		return err
	})
	if err != nil || targets < 40 {
		t.Errorf("%d targets, %v", targets, err)
	}
}

func TestAnInputOverItsBoundsIsTold(t *testing.T) {
	hold := make([]byte, 0)
	for name, c := range map[string]struct {
		time  time.Duration
		bytes uint64
		do    func(told chan string)
		want  bool
	}{
		"a good one":          {time.Hour, 1 << 30, func(chan string) {}, false},
		"one that never ends": {time.Millisecond, 1 << 30, func(told chan string) { told <- <-told }, true},
		"a large one":         {time.Hour, 1 << 20, func(chan string) { hold = make([]byte, 16<<20) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan string, 1)
			done := watch(c.time, c.bytes, func(why string) { told <- why })
			c.do(told)
			done()
			if got := len(told) > 0; got != c.want {
				t.Errorf("told: %v", got)
			}
		})
	}
	_ = hold
}
