package quantity

import "testing"

func TestTheSmallerBoundHoldsAndZeroIsNone(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 7, 5}, {7, 5, 5}} {
		if got := Smaller(c[0], c[1]); got != c[2] {
			t.Errorf("of %d and %d it is %d", c[0], c[1], got)
		}
	}
}
