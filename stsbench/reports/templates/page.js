"use strict";
(() => {
  for (const table of document.querySelectorAll("main table")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    let order = "";
    const key = (row, place) => {
      const text = row.cells[place].dataset.key;
      return heads[place].className === "num" && text !== "" ? Number(text) : text;
    };
    for (const [place, head] of heads.entries()) {
      head.firstElementChild.addEventListener("click", () => {
        order = Table.reorder(order, String(place), head.className === "text");
        body.append(...Table.sorted(body.rows, order, key));
        for (const [other, cell] of heads.entries()) cell.setAttribute("aria-sort", Table.ariaSort(order, String(other)));
      });
    }
  }
  for (const drawing of document.querySelectorAll(".drawing svg")) {
    const marks = [...drawing.querySelectorAll(".mark")];
    for (const mark of marks) {
      const title = mark.querySelector("title");
      mark.setAttribute("aria-label", title.textContent);
      mark.dataset.hint = title.textContent;
      mark.classList.add("hint");
      title.remove();
    }
    Chart.addKeys(drawing, marks);
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
