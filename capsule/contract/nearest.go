package contract

// nearest returns the candidate that differs from s by no more than two letters
// and two fifths of its length, or "".
func nearest(s string, candidates []string) string {
	best, distance := "", 3
	for _, c := range candidates {
		if d := edits(s, c); d < distance && 5*d <= 2*len(c) {
			best, distance = c, d
		}
	}
	return best
}

// edits counts the single-letter changes between two words. Words that can't be
// near are not compared.
func edits(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
