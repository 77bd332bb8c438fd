// Forms of units: rows come and go without a reload, files can be dropped, and what is wrong is shown without losing
// the files that were chosen. Without it the same buttons load the page again.

export function forms() {
  document.addEventListener("submit", send)
  document.addEventListener("dragover", hover)
  document.addEventListener("dragleave", hover)
  document.addEventListener("drop", drop)
}

/** @param {SubmitEvent} e */
async function send(e) {
  const form = e.target
  if (!(form instanceof HTMLFormElement) || form.dataset.form === undefined) return
  e.preventDefault()
  if (form.dataset.sending !== undefined) return
  const by = e.submitter instanceof HTMLButtonElement && e.submitter.name ? e.submitter : undefined
  const data = dataOf(form, by)
  const bytes = [...data.values()].reduce((sum, v) => sum + (v instanceof File ? v.size : v.length), 0)
  if (bytes > Number(form.dataset.most)) {
    return say(form, "That is more than the server takes at once. Choose fewer or smaller files.", true)
  }
  form.dataset.sending = ""
  if (!by) say(form, "Sending…", false)
  const answer = await fetch(form.action, { method: "POST", body: data }).catch(() => undefined)
  delete form.dataset.sending
  if (!answer) return say(form, "The server can't be reached. Nothing is lost here: try again.", true)
  if (answer.redirected) return location.assign(answer.url)
  show(form, by, await answer.text(), answer.url)
}

/**
 * What a browser would send. Files aren't, where no run is to begin.
 * @param {HTMLFormElement} form @param {HTMLButtonElement | undefined} by
 */
function dataOf(form, by) {
  const data = new FormData()
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string") data.append(name, value)
    else if (!by && value.name) data.append(name, value, value.name)
  }
  if (by) data.append(by.name, by.value)
  data.append("part", "true")
  return data
}

/** @param {HTMLFormElement} form @param {string} text @param {boolean} bad */
function say(form, text, bad) {
  const at = form.querySelector("[data-said]")
  if (!at) return
  at.textContent = text
  at.classList.toggle("bad", bad)
}

/** @param {HTMLFormElement} form @param {HTMLButtonElement | undefined} by @param {string} html @param {string} from */
function show(form, by, html, from) {
  const page = new DOMParser().parseFromString(html, "text/html")
  for (const name of ["href", "action"]) {
    for (const one of page.querySelectorAll(`main [${name}]`)) {
      const to = one.getAttribute(name) ?? ""
      if (!to.startsWith("#")) one.setAttribute(name, new URL(to, from).href)
    }
  }
  const made = page.getElementById("part-unit-form")
  const part = form.closest("[data-part]")
  if (!made || !part) {
    return say(form, page.querySelector(".note")?.textContent?.trim() ?? "The server didn't understand it: load the page again.", true)
  }
  const focus = made.querySelector("[autofocus]")
  focus?.removeAttribute("autofocus")
  const chosen = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll("input[type=file]")])
  part.replaceChildren(...made.childNodes)
  const moved = by?.name === "less" ? by.value.replace(/[^/]*$/, "") : undefined // rows below it have other numbers
  for (const one of chosen) {
    const at = part.querySelector(`input[type=file][name="${CSS.escape(one.name)}"]`)
    if (!one.files?.length || !(at instanceof HTMLInputElement) || (moved && one.name.startsWith(moved))) continue
    at.files = one.files
    for (const lost of at.parentElement?.querySelectorAll("[data-lost]") ?? []) lost.remove()
  }
  if (focus instanceof HTMLElement) focus.focus()
}

/** @param {DragEvent} e */
function hover(e) {
  const at = e.target instanceof Element ? e.target.closest(".drop") : null
  if (!at) return
  e.preventDefault()
  at.classList.toggle("over", e.type === "dragover")
}

/** @param {DragEvent} e */
function drop(e) {
  const at = e.target instanceof Element ? e.target.closest(".drop") : null
  const input = at?.querySelector("input[type=file]")
  if (!at || !(input instanceof HTMLInputElement) || !e.dataTransfer) return
  e.preventDefault()
  at.classList.remove("over")
  const all = new DataTransfer()
  const files = [...(input.multiple ? input.files ?? [] : []), ...e.dataTransfer.files]
  for (const file of input.multiple ? files : files.slice(0, 1)) all.items.add(file)
  input.files = all.files
}
