package contract

import "github.com/agent-on-demand/aod/api/fault"

// nearest returns the candidate that differs from s by no more than two letters
// and two fifths of its length, or "". Words that can't be near are not compared.
func nearest(s string, candidates []string) string {
	const most = 2
	best, distance := "", most+1
	for _, c := range candidates {
		if len(s) > len(c)+most || len(c) > len(s)+most {
			continue
		}
		if d := fault.Distance(s, c); d < distance && 5*d <= 2*len(c) {
			best, distance = c, d
		}
	}
	return best
}
