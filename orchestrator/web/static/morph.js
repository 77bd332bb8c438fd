// Makes an element like a text of HTML, and leaves what is the same as it is: what has the focus keeps it, what is
// open stays open, and what somebody is typing isn't lost.

/**
 * @param {Element} into
 * @param {string} html
 */
export function morph(into, html) {
  const made = document.createElement("template")
  made.innerHTML = html
  children(into, made.content)
}

/**
 * What tells one of several children from the others.
 * @param {Node} n
 * @returns {string}
 */
function keyOf(n) {
  return n instanceof Element && n.id ? n.id : ""
}

/**
 * @param {Node} into
 * @param {Node} from
 */
function children(into, from) {
  const byKey = new Map()
  for (const child of into.childNodes) if (keyOf(child)) byKey.set(keyOf(child), child)
  const stays = new Set([...from.childNodes].map(keyOf))
  for (const [key, child] of byKey) if (!stays.has(key)) into.removeChild(child) // what moves loses the focus
  let at = into.firstChild
  for (const wanted of [...from.childNodes]) {
    const key = keyOf(wanted)
    let match = key ? byKey.get(key) : at
    if (match && !key && (keyOf(match) || match.nodeType !== wanted.nodeType || match.nodeName !== wanted.nodeName)) match = undefined
    if (match && match.nodeName === wanted.nodeName) {
      while (key && at && at !== match && !keyOf(at)) {
        const gone = at
        at = at.nextSibling
        into.removeChild(gone)
      }
      if (match !== at) into.insertBefore(match, at)
      else at = at?.nextSibling ?? null
      same(match, wanted)
    } else {
      into.insertBefore(wanted, at)
    }
  }
  while (at) {
    const gone = at
    at = at.nextSibling
    into.removeChild(gone)
  }
}

/**
 * @param {Node} into
 * @param {Node} from
 */
function same(into, from) {
  if (!(into instanceof Element) || !(from instanceof Element)) {
    if (into.nodeValue !== from.nodeValue) into.nodeValue = from.nodeValue
    return
  }
  for (const { name, value } of from.attributes) if (into.getAttribute(name) !== value) into.setAttribute(name, value)
  for (const { name } of [...into.attributes]) if (!from.hasAttribute(name) && !kept(into, name)) into.removeAttribute(name)
  if (into instanceof HTMLTextAreaElement || into instanceof HTMLSelectElement) return
  if (into instanceof HTMLElement && into.classList.contains("det") && into.closest("[data-peeked]")) return
  children(into, from)
}

/**
 * What somebody has done here stays.
 * @param {Element} at
 * @param {string} name
 */
function kept(at, name) {
  return (at instanceof HTMLDetailsElement && name === "open") || name === "data-peeked"
}
