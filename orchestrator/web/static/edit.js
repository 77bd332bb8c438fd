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

  /**
   * Asks what is found in the text, with the form of a node, or of the one that has it. What is filled in there changes the text by "fields".
   * @param {string} [node] @param {string} [by]
   */
  async function check(node = found.querySelector("[data-node]")?.getAttribute("data-node") ?? "", by = "check") {
    window.clearTimeout(timer)
    asked.abort()
    asked = new AbortController()
    const signal = asked.signal
    const data = new URLSearchParams()
    for (const [name, value] of new FormData(form)) if (typeof value === "string") data.append(name, value)
    data.set("node", node)
    data.set("do", by)
    if (by !== "fields") data.set("part", "found")
    const answer = await fetch(form.action, { method: "POST", body: data, signal }).catch(() => undefined)
    const html = answer?.ok && !answer.redirected ? await answer.text().catch(() => "") : ""
    if (signal.aborted) return
    if (!html) return say(answer ? "It can't be checked: load the page again in another tab." : "The server can't be reached: nothing is lost here.")
    say("")
    if (data.has("part")) return show(html)
    const page = new DOMParser().parseFromString(html, "text/html")
    const made = page.querySelector("textarea[name=text]")
    if (made instanceof HTMLTextAreaElement) text.value = made.value
    number()
    show(page.getElementById("part-found")?.innerHTML ?? "")
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
   * Follows a link to a line, or to a node with its form.
   * @param {MouseEvent} e
   */
  async function follow(e) {
    const link = e.target instanceof Element ? e.target.closest("a") : null
    const to = link?.getAttribute("href") ?? ""
    if (!to.startsWith("#l") && !to.startsWith("?node=")) return
    e.preventDefault()
    if (to.startsWith("#l")) return select(Number(to.slice(2)))
    await check(new URLSearchParams(to.replace(/#.*/, "")).get("node") ?? "")
    const shown = found.querySelector("[data-line]")
    shown?.scrollIntoView({ block: "nearest" })
    if (shown) select(Number(shown.getAttribute("data-line")))
  }

  /** @param {number} line */
  function select(line) {
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
    timer = window.setTimeout(() => check(), pause)
  })
  form.addEventListener("submit", (e) => {
    let by = e.submitter instanceof HTMLButtonElement ? e.submitter.value : "check"
    if (by === "check" && document.activeElement?.closest("[data-node]")) by = "fields" // by the key Enter
    if (by === "save" || by === "download") return (sent = true)
    e.preventDefault()
    const chosen = found.querySelector("select")
    check(by === "node" ? chosen?.value : undefined, by)
  })
  found.addEventListener("click", follow)
  window.addEventListener("beforeunload", (e) => {
    if (text.value !== text.defaultValue && !sent) e.preventDefault()
    sent = false
  })
  number()
}
