// What lives on a page. Without it pages are whole: they are loaded again by hand.
import { editor } from "./edit.js"
import { forms } from "./form.js"
import { follow } from "./live.js"
import { morph } from "./morph.js"

const up = document.body.dataset.up ?? "./"

/** Texts that say how long something lasts, or how long ago it was, go on by themselves. */
function tick() {
  const now = Date.now()
  for (const at of document.querySelectorAll("[data-since]")) {
    at.textContent = span(now - Date.parse(at.getAttribute("data-since") ?? ""))
  }
  for (const at of document.querySelectorAll("time[data-ago]")) {
    at.textContent = ago(now - Date.parse(at.getAttribute("datetime") ?? ""))
  }
}

/**
 * @param {number} ms
 * @returns {string}
 */
function span(ms) {
  const s = Math.max(ms, 0) / 1000
  if (s < 60) return s.toFixed(1) + " s"
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
}

/**
 * @param {number} ms
 * @returns {string}
 */
function ago(ms) {
  const s = Math.abs(ms) / 1000
  if (ms >= 0 && s < 5) return "just now"
  let text = `${Math.floor(s)} s`
  if (s >= 172800) text = `${Math.floor(s / 86400)} days`
  else if (s >= 3600) text = `${Math.floor(s / 3600)} h`
  else if (s >= 60) text = `${Math.floor(s / 60)} min`
  return ms < 0 ? "in " + text : text + " ago"
}

/**
 * A row of the tree shows what its run was given and gave when it is opened.
 * @param {Event} e
 */
async function peek(e) {
  const row = e.target
  if (!(row instanceof HTMLDetailsElement) || !row.open || !row.dataset.peek) return
  const from = row.dataset.peek
  const into = row.querySelector(".det")
  if (!into || row.dataset.peeked) return
  row.dataset.peeked = "true"
  const answer = await fetch(from)
  if (answer.ok) into.innerHTML = await answer.text()
}

/**
 * Choosing all, and how many are chosen.
 * @param {Event} e
 */
function choose(e) {
  const box = e.target
  if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[name=run]"))
  if (box.id === "all") for (const one of boxes) one.checked = box.checked
  const said = document.getElementById("chosen")
  if (said) said.textContent = [...boxes].filter((one) => one.checked).length + " chosen"
}

editor(morph)
forms()
tick()
setInterval(tick, 1000)
document.addEventListener("toggle", peek, true)
document.addEventListener("change", choose)
if (document.body.hasAttribute("data-live")) {
  follow(up, document.body.dataset.here ?? "", (part, html) => {
    morph(part, html)
    tick()
  })
}
