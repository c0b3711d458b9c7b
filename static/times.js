// Countdowns: how long a decision can still be taken back.

// times keeps every countdown of a page; it is read again each second because a live
// page may have put a new one in place.
export function times(doc) {
  const tick = () => {
    for (const timer of doc.querySelectorAll("[data-until]")) {
      const left = Math.max(0, Math.ceil((Date.parse(timer.dataset.until) - Date.now()) / 1000));
      timer.querySelector("[data-left]").textContent = left > 90 ? `${Math.ceil(left / 60)} min` : `${left} s`;
      if (left === 0 && !timer.dataset.over) {
        timer.dataset.over = "yes";
        setTimeout(() => dispatchEvent(new Event("reread")), 1200); // the loops run each second
      }
    }
  };
  tick();
  setInterval(tick, 1000);
}
