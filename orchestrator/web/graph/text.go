package graph

import (
	"html"
	"math"
	"strings"
	"unicode"
)

const mostLetters = 400 // of any text, also where it is whole

// font is the size of letters in px, and how wide they are beside the usual ones.
type font struct{ size, wide float64 }

var (
	small = font{12, 1}
	bold  = font{13, 1.06}
)

// textWidth is about how wide a text is: nobody here knows the font.
func textWidth(text string, f font) (width float64) {
	for _, r := range clean(text) {
		width += f.letter(r)
	}
	return math.Ceil(width)
}

func (f font) letter(r rune) float64 {
	part := 0.58
	switch {
	case unicode.Is(unicode.Mn, r):
		part = 0
	case r >= 0x2e80:
		part = 1.05
	case strings.ContainsRune("iljIft.,:;'|!()[] ", r):
		part = 0.34
	case strings.ContainsRune("mwMW@%…", r):
		part = 0.9
	case unicode.IsUpper(r) || r > 0x24f:
		part = 0.7
	}
	return part * f.size * f.wide
}

// labelWidth is how wide the label of an edge is: in steps, so that a count that grows moves little.
func labelWidth(label string) float64 {
	return min(12*math.Ceil((textWidth(label, small)+8)/12), labelMost)
}

// cut is as much of a text as there is room for.
func cut(text string, room float64, f font) (shown string, isCut bool) {
	text = clean(text)
	if textWidth(text, f) <= room {
		return text, false
	}
	room -= f.letter('…')
	for i, r := range text {
		if room -= f.letter(r); room < 0 {
			return strings.TrimSpace(text[:i]) + "…", true
		}
	}
	return text, false
}

// clean bounds a text, and takes out what is no letter: what would turn the text around it, and
// what XML can't have.
func clean(text string) string {
	text = text[:min(len(text), 4*mostLetters)]
	letters := 0
	return strings.Map(func(r rune) rune {
		letters++
		switch {
		case letters > mostLetters, unicode.Is(unicode.Bidi_Control, r), r&0xfffe == 0xfffe:
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
}

// escape makes a text safe in elements and in attributes between quotes.
func escape(text string) string { return html.EscapeString(clean(text)) }
