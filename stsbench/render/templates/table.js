"use strict";
// What the tables of the pages share: elements, the address, sorting, pages, filters, files.
const Table = (() => {
  const by = (id) => document.getElementById(id);
  // An element with a text, or with a list of elements and texts; empty texts are left out.
  const make = (tag, content = "", more = {}) => {
    const element = Object.assign(document.createElement(tag), more);
    element.append(...[content].flat().filter((part) => part !== ""));
    return element;
  };
  const number = (value, digits = 2) => (value === null || Number.isNaN(value) ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "\u2212"));
  const count = (value) => value.toLocaleString("en");
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const options = (select, list, value) => {
    select.replaceChildren(...list.map(([key, text]) => make("option", text, { value: key })));
    select.value = value;
  };
  const once = (compute, key) => {
    let [known, made] = [null, null];
    return () => {
      if (known !== key()) [known, made] = [key(), compute()];
      return made;
    };
  };

  // Rows in the order of a column such as `-gold`; rows without a value stay at the end.
  const alphabet = new Intl.Collator("en");
  const sorted = (rows, order, value) => {
    const name = order.replace("-", ""), sign = order.startsWith("-") ? -1 : 1;
    const none = (own) => own === null || own === "" || Number.isNaN(own);
    const compare = (x, y) => (typeof x === "string" ? alphabet.compare(x, y) : x - y);
    const keyed = Array.from(rows, (row) => [value(row, name), row]);
    return keyed.sort(([x], [y]) => (none(x) || none(y) ? none(x) - none(y) : sign * compare(x, y))).map(([, row]) => row);
  };
  // The order after a click on a heading: numbers start with the largest, texts with the first, a second click reverses.
  const reorder = (order, name, isText) => (order.replace("-", "") === name ? !order.startsWith("-") : !isText) ? `-${name}` : name;
  const ariaSort = (order, name) => (order.replace("-", "") !== name ? "none" : order.startsWith("-") ? "descending" : "ascending");

  // The table of a page: `state` holds its choices, `usual` the initial ones, `names` the values by text column.
  // `repair` replaces unknown choices, `isNumeric` is whether a column may be limited, `show` draws all, `controls` the filters.
  const of = ({ state, usual, names, repair, isNumeric, show, controls }) => {
    const range = (text) => {
      const [low, high] = text.split("~").map((part) => (part === "" ? NaN : Number(part)));
      return [low, high ?? NaN];
    };
    const read = () => {
      const address = [...new URLSearchParams(location.hash.slice(1))];
      Object.assign(state, usual, { ranges: {}, kept: {} });
      for (const [name, value] of address) if (Object.hasOwn(usual, name)) state[name] = value;
      repair();
      for (const [name, value] of address) {
        const kind = name.slice(0, 3), column = name.slice(3);
        if (kind === "in." && isNumeric(column)) state.ranges[column] = range(value);
        else if (kind === "is." && Object.hasOwn(names, column) && names[column].includes(value)) state.kept[column] = value;
      }
      controls();
      show();
    };
    const write = () => {
      const address = new URLSearchParams();
      for (const [name, value] of Object.entries(usual)) if (state[name] !== value) address.set(name, state[name]);
      for (const [name, limits] of Object.entries(state.ranges)) address.set(`in.${name}`, limits.map((value) => (Number.isNaN(value) ? "" : String(value))).join("~"));
      for (const [name, value] of Object.entries(state.kept)) address.set(`is.${name}`, value);
      // A page inside another one may not have its own address.
      try { history.replaceState(null, "", `#${address}`); } catch { /* then it is not kept */ }
    };
    const start = () => { addEventListener("hashchange", read); read(); };
    const redraw = (changes = {}) => { Object.assign(state, { page: "1" }, changes); show(); };
    const head = (name, title, help, isText) => {
      const button = make("button", title, { type: "button" }), cell = make("th", [button], { scope: "col", className: isText ? "text" : "num", title: help });
      cell.setAttribute("aria-sort", ariaSort(state.sort, name));
      button.addEventListener("click", () => {
        // The order of the data cannot be reversed.
        redraw({ sort: name && reorder(state.sort, name, isText) });
        [...by("rows").querySelectorAll("thead button")].find((other) => other.textContent === title)?.focus();
      });
      return cell;
    };
    const pageOf = (list, size) => {
      const last = Math.max(1, Math.ceil(list.length / size)), page = Math.min(Math.max(1, Math.trunc(Number(state.page)) || 1), last);
      state.page = String(page);
      by("page").textContent = `Page ${count(page)} of ${count(last)}`;
      for (const id of ["before", "page", "after"]) by(id).hidden = last === 1;
      by("before").disabled = page <= 1;
      by("after").disabled = page >= last;
      return list.slice((page - 1) * size, page * size);
    };
    const chip = (text, drop) => {
      const button = make("button", `${text} ×`, { type: "button" });
      button.setAttribute("aria-label", `Remove the filter ${text}`);
      button.addEventListener("click", () => { drop(); redraw(); controls(); });
      return button;
    };
    const limit = (value, digits) => (Number.isNaN(value) ? "…" : number(value, digits));
    const rangeChips = (title, digits) => Object.entries(state.ranges).map(([name, [low, high]]) => chip(`${title(name)} ${limit(low, digits(name))} to ${limit(high, digits(name))}`, () => delete state.ranges[name]));
    const setRange = (name, limits) => {
      if (limits.every(Number.isNaN)) delete state.ranges[name]; else state.ranges[name] = limits;
    };
    const rangeField = (name, title) => {
      const ends = ["from", "to"].map((end, side) => {
        const input = make("input", "", { type: "number", step: "any" }), value = state.ranges[name]?.[side];
        input.value = value === undefined || Number.isNaN(value) ? "" : String(value);
        input.addEventListener("change", () => {
          const limits = state.ranges[name] ?? [NaN, NaN];
          limits[side] = input.value === "" ? NaN : Number(input.value);
          setRange(name, limits);
          redraw();
        });
        return make("label", [`${end} `, input]);
      });
      return make("fieldset", [make("legend", title), ...ends]);
    };
    const turn = (step) => { redraw({ page: String(Number(state.page) + step) }); by("rows").scrollIntoView(); };
    by("before").addEventListener("click", () => turn(-1));
    by("after").addEventListener("click", () => turn(1));
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    return { start, write, redraw, head, pageOf, chip, rangeChips, setRange, rangeField };
  };

  const files = (name, rows) => {
    const line = (text) => text.replace(/[\t\r\n]+/g, " ");
    // For pandas, R and spreadsheets a quotation mark starts a multi-line field, unless it is quoted.
    const quoted = (text) => (text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text);
    by("tsv").addEventListener("click", () => {
      const text = rows().map((row) => row.map((cell) => quoted(line(cell))).join("\t")).join("\n");
      const link = make("a", "", { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "text/tab-separated-values" })), download: `${name}.tsv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  };
  return { by, make, number, count, words, options, once, sorted, reorder, ariaSort, of, files };
})();
