package models

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheCacheOfModelsHasAnEnd(t *testing.T) {
	cache := &Cache{Dir: t.TempDir()}
	for n := range 3 {
		path := filepath.Join(cache.Dir, fmt.Sprint(n))
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxCache/3)); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(n) * 100 * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		var got []string
		entries, err := os.ReadDir(cache.Dir)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q are left, %v", got, err)
		}
	}
	for _, c := range []struct {
		room int64
		left []string
	}{{1, []string{"0", "1"}}, {maxCache / 3, []string{"0", "1"}}, {maxCache / 2, []string{"0"}}, {maxCache, nil}} {
		if err := cache.room(c.room); err != nil {
			t.Fatal(err)
		}
		left(c.left...)
	}
}
