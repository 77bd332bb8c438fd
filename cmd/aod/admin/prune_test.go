package admin

import (
	"testing"
)

func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "512MiB": 512 << 20, "1.5g": 3 << 29, "2 KB": 2048, "1t": 1 << 40, "7b": 7} {
		var f sizeFlag
		if err := f.Set(text); err != nil || int64(f) != want {
			t.Errorf("%s: %d, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1e3", "MiB", "1 x", "999999999999999t", "NaN"} {
		var f sizeFlag
		if err := f.Set(text); err == nil {
			t.Errorf("%q was taken for %d", text, f)
		}
	}
}
