package api

import (
	"encoding/json"
	"testing"
)

func TestACostIsExactAndBounded(t *testing.T) {
	for text, want := range map[string]Cost{
		"0": 0, "0.0212": 21_200_000, "1.5e0": 1_500_000_000, "-2": -2_000_000_000, "0.0000000019": 1,
		"9007199.254740993": 9_007_199_254_740_993, "1e-400": 0, "1e-999999999": 0, "null": 7,
	} {
		got := Cost(7)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1e10", "-1e10", "1e999999999", `"x"`} {
		var got Cost
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}
