// Drafts, sending once, and sending with Ctrl+Enter.

const saveAfter = 900; // ms without typing

// forms looks after the forms of a page.
export function forms(doc) {
  for (const zone of doc.querySelectorAll("[data-zone]")) {
    zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  }
  for (const field of doc.querySelectorAll("[data-select]")) {
    field.addEventListener("focus", () => field.select());
  }
  for (const form of doc.querySelectorAll("form[data-draft]")) drafts(form);
  doc.addEventListener("submit", once);
  doc.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
    const form = e.target.closest?.("form") ?? doc.querySelector("form[data-commit]");
    if (form && form.method === "post") {
      e.preventDefault();
      form.requestSubmit();
    }
  });
}

// once lets a second press of a button do nothing. The server refuses a second sending
// anyway; this only spares the person its answer.
function once(e) {
  const form = e.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) {
    e.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  form.setAttribute("aria-busy", "true");
  // A page that comes back from the browser's memory may be sent again.
  addEventListener("pageshow", () => {
    delete form.dataset.sent;
    form.removeAttribute("aria-busy");
  }, { once: true });
}

// drafts keeps what is typed on the server, for this person alone.
function drafts(form) {
  const said = form.querySelector("[data-saved]");
  const address = form.action.replace(/\/review$/, "/draft");
  let timer;
  const save = async (leaving) => {
    clearTimeout(timer);
    timer = undefined;
    try {
      const r = await fetch(address, { method: "POST", body: new URLSearchParams(new FormData(form)), keepalive: leaving, redirect: "manual" });
      if (said) said.textContent = r.status === 204 ? "Kept as a draft, only for you." : "";
    } catch {
      if (said) said.textContent = "Not kept: the server cannot be reached.";
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(save, saveAfter);
  });
  addEventListener("pagehide", () => timer && !form.dataset.sent && save(true));
}
