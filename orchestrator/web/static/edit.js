// The editor of a flow checks what is typed after a pause. Without it a button does.

const pause = 400 // ms

/** @param {(part: Element, html: string) => void} put */
export function editor(put) {
  const form = document.querySelector("form[data-edit]")
  const text = form?.querySelector("textarea")
  const found = document.getElementById("part-found")
  if (form instanceof HTMLFormElement && text && found) edit(form, text, found, put)
}

/**
 * @param {HTMLFormElement} form @param {HTMLTextAreaElement} text @param {HTMLElement} found
 * @param {(part: Element, html: string) => void} put
 */
function edit(form, text, found, put) {
  const gutter = /** @type {HTMLElement} */ (form.querySelector(".gut"))
  const most = 5000 // lines with a number
  let asked = new AbortController() // the request that goes on, or the last one
  let timer = 0
  let sent = false

  /** Numbers as many lines as there are. */
  function number() {
    const lines = text.value.replace(/\n$/, "").split("\n").length
    while (gutter.childElementCount > (lines > most ? 0 : lines)) gutter.lastElementChild?.remove()
    for (let n = gutter.childElementCount + 1; n <= lines && lines <= most; n++) {
      const line = document.createElement("li")
      line.id = "l" + n
      line.textContent = String(n)
      gutter.append(line)
    }
    text.rows = Math.min(Math.max(lines + 1, 16), most)
  }

  /** @param {string} what */
  function say(what) {
    const at = form.querySelector("[data-said]")
    if (at && at.textContent !== what) at.textContent = what
  }

  async function check() {
    asked.abort()
    asked = new AbortController()
    const signal = asked.signal
    const data = new URLSearchParams({ part: "found" })
    for (const [name, value] of new FormData(form)) if (typeof value === "string") data.append(name, value)
    const answer = await fetch(form.action, { method: "POST", body: data, signal }).catch(() => undefined)
    const html = answer?.ok && !answer.redirected ? await answer.text().catch(() => "") : ""
    if (signal.aborted) return
    if (!html) return say(answer ? "It can't be checked: load the page again in another tab." : "The server can't be reached: nothing is lost here.")
    say("")
    show(html)
  }

  /** @param {string} html */
  function show(html) {
    const made = document.createElement("template")
    made.innerHTML = html
    const none = made.content.querySelector("[data-none]")
    const graph = found.querySelector(".graph")
    if (none instanceof HTMLElement && graph) {
      none.textContent = none.dataset.none ?? ""
      none.before(graph.cloneNode(true))
    }
    put(found, made.innerHTML)
    const wrong = new Set([...found.querySelectorAll("[data-wrong]")].map((at) => at.getAttribute("data-wrong")))
    for (const line of gutter.children) line.classList.toggle("mark", wrong.has(line.textContent))
  }

  /**
   * Sets the caret to the line that a link names.
   * @param {MouseEvent} e
   */
  function follow(e) {
    const link = e.target instanceof Element ? e.target.closest('a[href^="#l"]') : null
    const line = Number(link?.getAttribute("href")?.slice(2))
    if (!line) return
    e.preventDefault()
    const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0)
    const end = text.value.indexOf("\n", before)
    text.focus({ preventScroll: true })
    text.setSelectionRange(before, end < 0 ? text.value.length : end)
    gutter.children[line - 1]?.scrollIntoView({ block: "center" })
  }

  text.addEventListener("input", () => {
    number()
    asked.abort()
    window.clearTimeout(timer)
    timer = window.setTimeout(check, pause)
  })
  form.addEventListener("submit", (e) => {
    window.clearTimeout(timer)
    if (e.submitter instanceof HTMLButtonElement && e.submitter.value === "check") {
      e.preventDefault()
      check()
    } else sent = true
  })
  found.addEventListener("click", follow)
  window.addEventListener("beforeunload", (e) => {
    if (text.value !== text.defaultValue && !sent) e.preventDefault()
    sent = false
  })
  number()
}
