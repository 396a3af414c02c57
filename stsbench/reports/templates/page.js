"use strict";
(() => {
  // A second click reverses the order; rows without a value stay at the end.
  const order = (a, b, place, isNumber, sign) => {
    const [x, y] = [a, b].map((row) => row.cells[place].dataset.key);
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (isNumber ? Number(x) - Number(y) : x.localeCompare(y));
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, body = head.closest("table").tBodies[0];
      const isNumber = head.classList.contains("num"), before = head.getAttribute("aria-sort");
      const sign = before === "none" ? (isNumber ? -1 : 1) : before === "ascending" ? -1 : 1;
      for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      body.append(...[...body.rows].sort((a, b) => order(a, b, head.cellIndex, isNumber, sign)));
    });
  }

  // The points of a figure are a single tab stop; arrow keys move between them.
  for (const drawing of document.querySelectorAll(".drawing svg")) {
    const marks = [...drawing.querySelectorAll(".mark")];
    for (const [place, mark] of marks.entries()) {
      const title = mark.querySelector("title");
      mark.setAttribute("tabindex", place ? "-1" : "0");
      mark.setAttribute("aria-label", title.textContent);
      mark.dataset.hint = title.textContent;
      mark.classList.add("hint");
      title.remove();
    }
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0;
      const here = marks.indexOf(document.activeElement), next = marks[here + step];
      if (!step || here < 0 || !next) return;
      marks[here].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
      event.preventDefault();
    });
  }
  // A link to a folded section opens it; in print, all are open.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = target && (target.closest("main details") ?? target.querySelector(":scope > details"));
    if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("main details")) fold.open = true; });
  reveal();

  const tip = document.getElementById("tip");
  let told = null;
  const hide = () => { told = null; tip.hidden = true; };
  const place = () => {
    if (!told) return;
    const at = told.getBoundingClientRect(), own = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(at.left, innerWidth - own.width - 4))}px`;
    tip.style.top = `${at.bottom + own.height + 8 > innerHeight ? at.top - own.height - 6 : at.bottom + 6}px`;
  };
  const tell = (event) => {
    const hint = event.target.closest?.(".hint");
    if (!hint) return;
    told = hint;
    tip.textContent = hint.dataset.hint;
    tip.hidden = false;
    place();
  };
  for (const name of ["mouseover", "focusin"]) document.addEventListener(name, tell);
  for (const name of ["mouseout", "focusout"]) document.addEventListener(name, hide);
  // Moving to a cell by the keyboard scrolls to it, and the tooltip follows.
  document.addEventListener("scroll", place, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
