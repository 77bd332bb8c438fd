package quantity

// Smaller returns the smaller of two bounds, of which 0 is none.
func Smaller[T ~int64](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
