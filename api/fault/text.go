package fault

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxQuoted is how much a message repeats of a foreign text, in bytes.
const MaxQuoted = 80

// Clip cuts a foreign text for a message, and shows that it did.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Cut(s, most) + "…"
}

// Cut cuts a text between runes.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Quote makes a foreign text fit to be shown: cut, and without control characters.
func Quote(s string) string { return strconv.Quote(Clip(s, MaxQuoted)) }

// OneLine has spaces for control characters, which a terminal would obey.
func OneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
}

// Nearest returns the known word that was most likely meant, or "". Of several that are as near
// it is one with the same first letter, which people rarely get wrong.
func Nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		d := Distance(plain(word), plain(k))
		nearer := d < bestDistance || d == bestDistance && best != "" && beginAlike(word, k) && !beginAlike(word, best)
		if nearer && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Suggest is the hint for a word that isn't among the known ones: the nearest of them, or what
// is said otherwise.
func Suggest(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

func beginAlike(a, b string) bool { return a != "" && b != "" && a[0] == b[0] }

// plain takes away what people confuse in keys without meaning another key.
func plain(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(Clip(s, MaxQuoted)))
}

// Distance is Levenshtein's: how many letters to change, add or leave out.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
