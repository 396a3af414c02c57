"use strict";
(() => {
  // The system's colours, unless the reader chose others; the browser may not store the choice.
  const root = document.documentElement, theme = document.getElementById("theme");
  const keep = (value) => { try { localStorage.setItem("stsbench-theme", value); } catch { /* not allowed: no matter */ } };
  const kept = () => { try { return localStorage.getItem("stsbench-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  // The button shows the colours that it switches to.
  const show = () => {
    theme.textContent = isDark() ? "\u2600" : "\u263e";
    theme.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  };
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; keep(root.dataset.theme); show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
})();
