// Keeps a page as it is at the server: one stream a tab, at most three a browser, none while nobody looks.

const slots = 3
const again = 2000 // ms

/**
 * @param {string} up @param {string} here
 * @param {(part: Element, html: string) => void} put
 */
export function follow(up, here, put) {
  const said = document.getElementById("live")
  /** @type {EventSource | undefined} */
  let stream
  /** @type {(() => void) | undefined} */
  let free
  /** @type {number | undefined} */
  let timer

  /**
 * @param {string} text
 * @param {string} cls
 */
  function say(text, cls) {
    if (!said) return
    said.hidden = text === ""
    if (said.textContent !== text) said.textContent = text
    said.className = "st end " + cls
  }

  function address() {
    const have = [...document.querySelectorAll("[data-part]")].map((p) => `${p.getAttribute("data-part")}:${p.getAttribute("data-hash")}`)
    return `${up}live?page=${encodeURIComponent(here)}&key=${document.body.dataset.key}&have=${have.join(",")}`
  }

  /** @param {string} data */
  function update(data) {
    const news = JSON.parse(data)
    const parts = places(news.keys)
    for (const { key, hash, html } of news.parts) {
      const part = parts.get(key)
      if (!part) continue
      put(part, html)
      part.setAttribute("data-hash", hash)
    }
    document.title = news.title + " · AOD"
    const asked = document.getElementById("asked")
    if (asked) {
      asked.textContent = news.asked
      asked.hidden = news.asked === ""
    }
  }

  /** @param {boolean} [out] nobody is signed in any more */
  function lost(out) {
    say(out ? "You are signed out: load the page again" : "No connection: what you see may be old. Trying again…", "late")
  }

  /** An EventSource doesn't say that it was led to where people sign in. */
  async function retry() {
    const mine = turn
    const answer = await fetch(address() + "&once=true").catch(() => undefined)
    if (mine !== turn) return
    if (answer?.ok && !answer.redirected) return open()
    lost(answer?.redirected)
    timer = window.setTimeout(retry, again)
  }

  function open() {
    close()
    stream = new EventSource(address())
    stream.onopen = () => say("Live", "run")
    stream.addEventListener("update", (e) => update(e.data))
    stream.addEventListener("gone", (e) => {
      close()
      say(JSON.parse(e.data), "bad")
    })
    stream.onerror = () => {
      close()
      lost()
      timer = window.setTimeout(retry, again)
    }
  }

  function close() {
    stream?.close()
    stream = undefined
    window.clearTimeout(timer)
  }

  /**
   * Tabs beyond the third that are seen at once look by themselves every few seconds.
   * @param {number} mine
   */
  async function look(mine) {
    const answer = await fetch(address() + "&once=true").catch(() => undefined)
    const news = answer?.ok && !answer.redirected ? await answer.text().catch(() => "") : ""
    if (mine !== turn) return
    if (news) {
      update(news)
      say("Live", "run")
    } else lost(answer?.redirected)
    timer = window.setTimeout(begin, again)
  }

  // Only the last begin counts: the tab may be hidden, or shown once more, while it waits for a lock.
  let turn = 0
  async function begin() {
    if (document.hidden || free) return
    const mine = ++turn
    for (let n = 0; n < slots; n++) {
      const got = await take("aod-stream-" + n)
      if (mine !== turn) return got?.()
      if (!got) continue
      free = got
      return open()
    }
    look(mine)
  }

  function end() {
    turn++
    close()
    free?.()
    free = undefined
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()))
  window.addEventListener("pagehide", end)
  window.addEventListener("pageshow", (e) => e.persisted && begin())
  begin()
}

/**
 * The places of a page's parts, made where they aren't there yet.
 * @param {string[]} keys @returns {Map<string, Element>}
 */
function places(keys) {
  const main = document.getElementById("main") ?? document.body
  const there = new Map([...main.querySelectorAll("[data-part]")].map((p) => [p.getAttribute("data-part") ?? "", p]))
  let last = null
  for (const key of keys) {
    let part = there.get(key)
    if (!part) {
      part = document.createElement("div")
      part.className = "part"
      part.id = "part-" + key
      part.setAttribute("data-part", key)
      there.set(key, part)
      main.insertBefore(part, last ? last.nextSibling : main.firstChild)
    }
    last = part
  }
  for (const [key, part] of there) if (!keys.includes(key)) part.remove()
  return there
}

/**
 * Takes a lock that all tabs share; the answer frees it.
 * @param {string} name
 * @returns {Promise<(() => void) | undefined>}
 */
function take(name) {
  if (!navigator.locks) return Promise.resolve(() => {}) // not over plain HTTP from another machine
  return new Promise((resolve) => {
    navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (!lock) return resolve(undefined)
      return new Promise((free) => resolve(() => free(undefined)))
    })
  })
}
