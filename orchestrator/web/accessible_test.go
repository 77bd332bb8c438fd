package web_test

import (
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
)

// contrast lists texts that stand out too little from what is behind them (WCAG 2.2, 1.4.3), of all that a page shows
// when everything is unfolded: 4.5, and 3 for large text. In a picture what is behind is the last shape below it.
const contrast = `(() => {
	const parts = (text) => {
		const [r, g, b, a] = text.match(/[\d.]+(e-\d+)?/g).map(Number), of = text.startsWith("color(") ? 1 : 255
		return [r / of, g / of, b / of, a ?? 1]
	}
	const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1]
	const light = (c) => c.slice(0, 3).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0)
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((x, y) => y - x); return (x + .05) / (y + .05) }
	const behind = (e) => {
		if (!e) return parts(getComputedStyle(document.documentElement).backgroundColor)
		const own = parts(getComputedStyle(e).backgroundColor)
		return own[3] === 1 ? own : over(own, behind(e.parentElement))
	}
	const below = (e) => {
		const svg = e.ownerSVGElement, at = e.getBoundingClientRect(), x = (at.left + at.right) / 2, y = (at.top + at.bottom) / 2
		let ground = behind(svg)
		for (const shape of svg.querySelectorAll("rect, circle, path")) {
			if (shape.closest("marker, symbol") || !(shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) continue
			const box = shape.getBoundingClientRect(), fill = getComputedStyle(shape).fill
			if (fill !== "none" && box.left <= x && x <= box.right && box.top <= y && y <= box.bottom) ground = over(parts(fill), ground)
		}
		return ground
	}
	const bad = new Set()
	const look = (e, text, style, ground) => {
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700
		const fore = parts(e.ownerSVGElement ? style.fill : style.color)
		const got = ratio(over(fore, ground), ground)
		if (got < (large ? 3 : 4.5)) bad.add(got.toFixed(2) + " " + JSON.stringify(text.slice(0, 40)) + " in " + e.cloneNode().outerHTML.slice(0, 120))
	}
	const folded = [...document.querySelectorAll("details:not([open]):not([data-peek])")]
	for (const d of folded) d.open = true
	const seen = (e) => e.checkVisibility({visibilityProperty: true}) && !e.closest(":disabled, datalist, option, .skip:not(:focus)")
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement
		if (n.data.trim() && seen(e) && !e.closest(".vh")) look(e, n.data.trim(), getComputedStyle(e), e.ownerSVGElement ? below(e) : behind(e))
	}
	for (const e of document.querySelectorAll("input:not([type=checkbox]):not([type=radio]):not([type=hidden]), textarea, select")) {
		if (!seen(e)) continue
		look(e, e.value, getComputedStyle(e), behind(e))
		if (e.placeholder) look(e, e.placeholder, getComputedStyle(e, "::placeholder"), behind(e))
	}
	for (const d of folded) d.open = false
	return [...bad]
})()`

// skipped lists headings that are more than one level below the one before.
const skipped = `[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((h) => h.checkVisibility()).map((h, i, all) =>
	h.tagName[1] > (i ? +all[i - 1].tagName[1] : 0) + 1 ? h.outerHTML : "").filter(Boolean)`

// walkable prepares a walk by the keyboard from the page's beginning: it returns how often Tab is to be pressed, which is
// once for a control and for each part of a date, and has the tab note what gets the focus, and whether that is seen: by
// an outline, or by the stroke of a node in a graph.
const walkable = `(() => {
	window.controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) =>
		e.checkVisibility({visibilityProperty: true}) && !e.matches(":disabled, [type=hidden], [aria-hidden=true]") &&
		(e.type !== "radio" || [...e.form.elements[e.name]].reduce((one, other) => other.checked ? other : one) === e))
	window.reached = []
	document.addEventListener("focusin", ({target: e}) => {
		const s = getComputedStyle(e), body = e.querySelector(".body")
		const seen = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 || body && parseFloat(getComputedStyle(body).strokeWidth) >= 3
		reached.push([e, seen])
	})
	window.start = document.createElement("span")
	start.tabIndex = -1
	document.body.prepend(start)
	start.focus()
	reached.length = 0
	return controls.length + 8 * document.querySelectorAll("[type=date], [type=datetime-local], [type=time]").length
})()`

// walked lists what is wrong with that walk.
const walked = `(() => {
	start.remove()
	const name = (e) => e?.cloneNode().outerHTML.slice(0, 160) ?? "nothing", wrong = []
	for (const [i, e] of controls.entries()) {
		if (reached[i]?.[0] !== e) { wrong.push("Tab " + (i + 1) + " leads to " + name(reached[i]?.[0]) + ", not to " + name(e)); break }
		if (!reached[i][1]) wrong.push("nobody sees the focus on " + name(e))
	}
	return wrong
})()`

// isReadable fails the test unless the page is one for people who see little, or who have no mouse: in light and in
// dark.
func (b *tab) isReadable(path string) {
	b.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for _, bad := range eval[[]string](b, contrast) {
			b.t.Errorf("%s: the contrast in %s is %s", path, theme, bad)
		}
	}
	for _, heading := range eval[[]string](b, skipped) {
		b.t.Errorf("%s: a level is skipped before %s", path, heading)
	}
	for range eval[int](b, walkable) {
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Tab", Code: "Tab", WindowsVirtualKeyCode: '\t'})
	}
	if wrong := eval[[]string](b, walked); len(wrong) > 0 {
		b.t.Errorf("%s, by the keyboard: %s", path, strings.Join(wrong, "; "))
	}
}

// theme has the system prefer light or dark.
func (b *tab) theme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}
