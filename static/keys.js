// The keyboard. A key moves, opens or puts the cursor somewhere; none commits.

const pages = { q: "/", d: "/decided", r: "/runs", a: "/audit", t: "/tools" };

// keys listens on a page.
export function keys(doc) {
  let going = 0; // until when a letter after g names a page
  doc.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    const typing = e.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (e.key === "Escape" && typing) {
      typing.blur();
      return;
    }
    if (typing || doc.querySelector("dialog[open]")) return;
    if (e.key === "g") {
      going = Date.now() + 1500;
      return;
    }
    if (Date.now() < going && pages[e.key]) {
      going = 0;
      location.assign(pages[e.key]);
      return;
    }
    going = 0;
    if (act(doc, e.key)) e.preventDefault();
  });
}

function act(doc, key) {
  switch (key) {
    case "j": return move(doc, 1);
    case "k": return move(doc, -1);
    case "x": return choose(doc);
    case "/": return focus(doc.querySelector("#search"), true);
    case "t": return verdict(doc, "taken");
    case "l": return verdict(doc, "unsure");
    // Two verdicts say no, and one of them sends again: a person takes the last step.
    case "n": return focus(doc.querySelector("#verdict [value=stop]"));
    case "u": return focus(doc.querySelector("#undo textarea"));
    case "?": doc.querySelector("#keys")?.showModal(); return true;
  }
  return false;
}

function focus(field, whole) {
  if (!field) return false;
  field.focus();
  field.scrollIntoView({ block: "nearest" });
  if (whole) field.select();
  return true;
}

function move(doc, by) {
  const rows = [...doc.querySelectorAll("tr[data-row]")];
  if (rows.length === 0) return false;
  const at = rows.findIndex((r) => r.classList.contains("now"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))];
  rows[at]?.classList.remove("now");
  next.classList.add("now");
  return focus(next.querySelector("a.what"));
}

function choose(doc) {
  const box = doc.querySelector("tr.now input[type=checkbox]");
  box?.click();
  return Boolean(box);
}

function verdict(doc, value) {
  const form = doc.querySelector("#verdict");
  const radio = form?.querySelector(`[name=verdict][value=${value}]`);
  if (!radio) return false;
  radio.click();
  return focus(form.querySelector("[name=note]"));
}
