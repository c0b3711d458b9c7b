// A live page: the server says "changed", the page is read again, and the regions
// marked data-live are put in place. Forms, and whatever somebody may be about to
// press, stay as they are.

const pace = 1500; // ms between two readings at the least

// live connects a page to its event stream while somebody can see it.
export function live(doc) {
  const from = doc.body.dataset.liveFrom;
  if (!from) return;
  const page = new Page(doc);
  let stream;
  const open = () => {
    stream = new EventSource(from);
    stream.addEventListener("changed", () => page.soon());
    // Whatever was missed while the stream was down is read once it is back.
    let first = true;
    stream.addEventListener("open", () => {
      if (!first) page.soon();
      first = false;
    });
  };
  const close = () => {
    stream?.close();
    stream = undefined;
  };
  doc.addEventListener("visibilitychange", () => {
    if (doc.hidden) close();
    else if (!stream) {
      open();
      page.soon();
    }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => {
    if (e.persisted) location.reload(); // from the browser's memory: it may show what is long over
  });
  addEventListener("reread", () => page.soon());
  if (doc.querySelector("[data-later]")) page.soon();
  if (!doc.hidden) open();
}

// unfold opens in a new region what somebody has opened in the old one, and closes what they
// have closed.
function unfold(region, next) {
  for (const old of region.querySelectorAll("details[data-keep]")) {
    const fresh = next.querySelector(`[data-keep="${CSS.escape(old.dataset.keep)}"]`);
    if (fresh) fresh.open = old.open;
  }
}

class Page {
  constructor(doc) {
    this.doc = doc;
    this.version = doc.querySelector("[data-effect-version]")?.dataset.effectVersion;
    this.last = 0;
  }

  // soon reads the page again, several wishes at once counting as one.
  soon() {
    if (this.timer) return;
    this.timer = setTimeout(() => this.read(), Math.max(100, this.last + pace - Date.now()));
  }

  async read() {
    this.last = Date.now();
    try {
      const later = this.doc.querySelector("[data-later]");
      const r = await fetch(later?.href ?? location.href, { headers: { Accept: "text/html", "X-Live": "yes" } });
      if (r.redirected && new URL(r.url).pathname === "/sign-in") {
        this.say("You are signed out. What you have typed is kept when you send it.");
        return;
      }
      if (r.ok) this.put(new DOMParser().parseFromString(await r.text(), "text/html"));
    } catch {
      // The stream comes back by itself, and then this is read again.
    } finally {
      this.timer = undefined;
    }
  }

  put(fresh) {
    this.rows(fresh);
    for (const region of this.doc.querySelectorAll("[data-live]")) {
      if (region.closest("tr.gone")) continue;
      const next = fresh.querySelector(`[data-live="${CSS.escape(region.dataset.live)}"]`);
      if (!next) continue;
      unfold(region, next);
      if (next.outerHTML === region.outerHTML) continue;
      const at = this.doc.activeElement;
      const fold = at.matches?.("summary") && at.closest("[data-keep]")?.dataset.keep;
      if (region.querySelector("form") || (region.contains(at) && !fold)) continue;
      const inside = region.contains(at);
      const put = this.doc.importNode(next, true);
      region.replaceWith(put);
      if (inside) put.querySelector(`[data-keep="${CSS.escape(fold)}"] > summary`)?.focus({ preventScroll: true });
    }
    this.moved(fresh);
  }

  // rows greys out in place what is no longer listed, and counts what is new.
  rows(fresh) {
    const table = this.doc.querySelector("#rows");
    const pill = this.doc.querySelector("#pill");
    if (!pill) return;
    const here = new Map([...this.doc.querySelectorAll("#rows tr[data-row]")].map((r) => [r.dataset.row, r]));
    const there = new Set([...fresh.querySelectorAll("#rows tr[data-row]")].map((r) => r.dataset.row));
    for (const [id, row] of here) {
      if (there.has(id) || row.classList.contains("gone")) continue;
      row.classList.add("gone");
      const box = row.querySelector("input[type=checkbox]");
      if (box) box.checked = false;
      const said = this.doc.createElement("div");
      said.className = "sub";
      said.textContent = "Not waiting any more: decided elsewhere";
      row.querySelector(".wide")?.append(said);
    }
    const added = [...there].filter((id) => !here.has(id)).length;
    pill.hidden = added === 0;
    if (added > 0) {
      pill.href = location.href;
      pill.textContent = table ? `${added} new` : `${added} waiting: show`;
    }
  }

  // moved tells that the effect has changed under an open form.
  moved(fresh) {
    const now = fresh.querySelector("[data-effect-version]")?.dataset.effectVersion;
    if (!now || now === this.version) return;
    this.version = now;
    const note = this.doc.querySelector("#moved");
    const open = fresh.querySelector("#verdict");
    if (note && open) note.hidden = false;
    else this.say("This has changed.", "Show how it stands now");
  }

  say(text, link) {
    let place = this.doc.querySelector("#said");
    if (!place) {
      place = this.doc.createElement("p");
      place.id = "said";
      place.className = "notice warn";
      place.setAttribute("role", "status");
      (this.doc.querySelector(".panel-place") ?? this.doc.querySelector("main")).prepend(place);
    }
    place.textContent = text + " ";
    if (link) {
      const a = this.doc.createElement("a");
      a.href = location.pathname + location.search.replace(/[?&]done=[^&]*/, "");
      a.textContent = link;
      place.append(a);
    }
  }
}
