"use strict";
(() => {
  // Without a choice of the reader's the system decides; the choice holds where the browser keeps one.
  const root = document.documentElement, theme = document.getElementById("theme");
  const keep = (value) => { try { localStorage.setItem("stsbench-theme", value); } catch { /* not allowed: no matter */ } };
  const kept = () => { try { return localStorage.getItem("stsbench-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  // The button says what it leads to.
  const show = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
})();
