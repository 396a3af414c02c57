"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { by, make, number, count, once, options } = Table;
  const two = data.models.length === 2, ends = two ? ["a", "b"] : ["a"], size = data.columns.item_id.length;
  const PAGE = 50, NEAR = 5, WRONG = 25;

  // For each column: its heading, decimals (none for text), and description.
  const of = (end) => (two ? ` ${end.toUpperCase()}` : "");
  const COLUMNS = [
    ["task", "Task", null, "The task; a pair in several tasks has all of them below its item."],
    ["subset", "Subset", null, "The subset of the task."],
    ["gold", "Gold", 2, "The similarity that human raters gave."],
    ["label", "Label", null, "The label that human raters gave."],
    ...ends.flatMap((end) => [
      [`similarity_${end}`, `Similarity${of(end)}`, 3, "The similarity that the model gives."],
      [`prediction_${end}`, `Prediction${of(end)}`, null, "The label that the classifier predicts."],
      [`correct_${end}`, `Right${of(end)}`, 0, "1 if the prediction is the label, 0 if not."],
      [`score_${end}`, `Score${of(end)}`, 4, "The score of the query or item."],
      [`missed_${end}`, `Missed${of(end)}`, null, `Relevant documents that are not among the model's ten best${two ? ", but among the other's" : ""}.`],
    ]),
    ["gain", "Gain of B", 3, "Contribution to the difference of the two scores x 100. Those of a task add up to the difference."],
    ...ends.map((end) => [`influence_${end}`, `Influence${of(end)}`, 3, "Effect on the score x 100, to first order: how much higher the score is with the item than without. Those of a task add up to 0."]),
    ...ends.map((end) => [`residual_${end}`, `Off by${of(end)}`, 1, `The model's rank minus the rank by gold: above 0 the model ranks the pair too high. From ${WRONG} on, either way, the pair counts as wrong.`]),
    ["longer", "Words longer", 0, "Difference in words."],
    ["overlap", "Overlap", 2, "Share of the words that both sentences have (Jaccard similarity)."],
    ["rank_gold", "Rank by gold", 1, "Percentage of pairs with a lower gold score; ties count half."],
    ...ends.map((end) => [`rank_${end}`, `Rank${of(end)}`, 1, "Percentage of pairs with a lower similarity; ties count half."]),
  ];
  // The table shows what fits beside the sentences; an open pair and the saved files have every column.
  const IN_TABLE = new Set(["subset", "gold", "label", ...ends.flatMap((end) => [`similarity_${end}`, `prediction_${end}`, `score_${end}`, `missed_${end}`]), two ? "gain" : "influence_a"]);
  const PRESETS = two
    ? [["Most gained by B", { verdict: "", sort: "-gain" }], ["Most lost by B", { verdict: "", sort: "gain" }], ["Only A wrong", { verdict: "a", sort: "-gain" }], ["Only B wrong", { verdict: "b", sort: "gain" }]]
    : [["Most costly pairs", { verdict: "", sort: "influence_a" }], ["Wrong pairs", { verdict: "wrong", sort: "influence_a" }]];
  const heading = Object.fromEntries(COLUMNS.map(([name, title]) => [name, title]));
  const decimals = Object.fromEntries(COLUMNS.map(([name, , digits]) => [name, digits]));
  const help = Object.fromEntries(COLUMNS.map(([name, , , text]) => [name, text]));
  const isText = (name) => decimals[name] === null;

  // Numeric columns are numbers, NaN if missing; text columns are indices into their names.
  const columns = { task: new Int32Array(size) };
  const names = { ...data.names, task: data.tasks.map((task) => task.name) };
  const from = [];
  let start = 0;
  data.tasks.forEach((task, place) => {
    from.push(start);
    columns.task.fill(place, start, start += task.size);
  });
  for (const [name, values] of Object.entries(data.columns)) {
    columns[name] = name === "item_id" ? values
      : name in names ? Int32Array.from(values)
      : Float64Array.from(values, (value) => (value === null ? NaN : Number(value)));
  }
  const has = (name) => Object.hasOwn(columns, name);

  // The choices: each task, and each average with its tasks.
  const choices = [
    ...data.averages.map((total) => ({
      ...total,
      tasks: data.tasks.flatMap((task, place) => (task.average === total.name ? [place] : [])),
    })),
    ...data.tasks.map((task, place) => ({ ...task, tasks: [place] })),
  ];

  const USUAL = { task: "0", q: "", verdict: "", sort: two ? "-gain" : "influence_a", page: "1", open: "", x: "", y: "" };
  const state = { ...USUAL, ranges: {}, kept: {} };
  const repair = () => {
    if (!Object.hasOwn(choices, state.task) || state.task === "length") state.task = "0";
    if (!Object.hasOwn(VERDICTS, state.verdict)) state.verdict = "";
    if (!has(state.sort.replace("-", ""))) state.sort = "";
  };
  const chosen = () => choices[state.task];
  const unit = () => data.tasks[chosen().tasks[0]].unit;
  const itemsOf = (task) => Array.from({ length: data.tasks[task].size }, (_, i) => from[task] + i);
  const members = once(() => chosen().tasks.flatMap(itemsOf), () => state.task);
  const isRanked = () => chosen().tasks.every((task) => data.tasks[task].ranked);
  const isLabelled = () => has("correct_a") && chosen().tasks.every((task) => !Number.isNaN(columns.correct_a[from[task]]));
  // A column is shown if an item has a value in it; that of subsets, if they differ from the tasks.
  const shown = once(() => {
    const items = members();
    return COLUMNS.map(([name]) => name).filter((name) => {
      if (!has(name)) return false;
      if (name === "task") return chosen().tasks.length > 1;
      if (name === "subset") return items.some((item) => word(name, item) !== "");
      if (["longer", "overlap"].includes(name) && !hasTwo(items[0])) return false;
      if (isText(name)) return items.some((item) => names[name][columns[name][item]] !== "");
      return items.some((item) => !Number.isNaN(columns[name][item]));
    });
  }, () => state.task);

  const folded = data.sentences?.map((text) => text.toLowerCase());
  const hasWord = (item, word) => ["first", "second"].some((side) => folded[columns[side][item]].includes(word));
  const isWrong = (item, end) => (isLabelled() ? columns[`correct_${end}`][item] === 0
    : Math.abs(columns[`residual_${end}`][item]) >= WRONG);
  const VERDICTS = two
    ? { a: ["Only A wrong", (a, b) => a && !b], b: ["Only B wrong", (a, b) => b && !a], both: ["Both wrong", (a, b) => a && b], none: ["Neither wrong", (a, b) => !a && !b] }
    : { wrong: ["Wrong", (a) => a], right: ["Right", (a) => !a] };
  const canBeWrong = () => isLabelled() || isRanked();

  const filtered = () => {
    let items = members();
    for (const [name, [low, high]] of Object.entries(state.ranges)) {
      const values = columns[name];
      items = items.filter((item) => !(values[item] < low) && !(values[item] > high) && !Number.isNaN(values[item]));
    }
    for (const [name, value] of Object.entries(state.kept)) {
      const place = names[name].indexOf(value);
      items = items.filter((item) => columns[name][item] === place);
    }
    const words = Table.words(state.q);
    if (words.length && folded) items = items.filter((item) => words.every((word) => hasWord(item, word)));
    const verdict = VERDICTS[state.verdict];
    if (verdict && canBeWrong()) items = items.filter((item) => verdict[1](...ends.map((end) => isWrong(item, end))));
    return items;
  };
  // A row is an item, or a pair with its items in several tasks, whose gains and influences add up.
  const merged = (items) => {
    const rows = new Map();
    for (const item of items) {
      const pair = isRanked() ? `${columns.first[item]} ${columns.second[item]}` : item, row = rows.get(pair);
      if (row?.every((other) => columns.task[other] !== columns.task[item])) row.push(item);
      else rows.set(row ? item : pair, [item]);
    }
    return [...rows.values()];
  };
  const valueOf = ([item, ...others], name) => {
    if (isText(name)) return word(name, item);
    return others.reduce((sum, other) => (/^(gain|influence)/.test(name) ? sum + columns[name][other] : sum), columns[name][item]);
  };
  const sorted = (rows) => (state.sort ? Table.sorted(rows, state.sort, valueOf) : rows);

  const sumOf = (items, name) => items.reduce((sum, item) => sum + columns[name][item], 0) / chosen().tasks.length;
  const tell = (items) => {
    const { name, scores } = chosen(), every = members().length;
    const isAll = items.length === every, [a, b] = scores.map((score) => number(score));
    let text = isAll ? `All ${count(every)} ${unit()}: ${name} is ${two ? `${b} for B and ${a} for A, a difference of ${number(scores[1] - scores[0])}` : a}.` : `${count(items.length)} of ${count(every)} ${unit()}`;
    if (two && !isAll) {
      const sum = sumOf(items, "gain"), share = Math.round(100 * sum / (scores[1] - scores[0]));
      text += ` account for ${number(sum)} of the ${number(scores[1] - scores[0])} difference in ${name} (B ${b}, A ${a}).`;
      if (items.length && Number.isFinite(share)) text += ` That is ${number(share, 0)} % of it, from ${number(100 * items.length / every, 100 * items.length < every ? 2 : 0)} % of the ${unit()}.`;
      // A selection by outcome has its own difference.
      if (state.verdict) text += ` They were selected by outcome: to compare kinds of ${unit()}, show all of a kind.`;
    } else if (!isAll) text += `: their influences add up to ${number(sumOf(items, "influence_a"))}, and ${name} is ${a}.`;
    if (state.verdict && isRanked()) text += ` A pair is wrong if its rank is off by ${WRONG} % or more.`;
    const column = state.sort.replace("-", "");
    const meant = state.sort.startsWith("influence") ? ": what costs most" : "";
    if (column) text += ` By ${heading[column]}, ${state.sort.startsWith("-") ? "highest" : "lowest"} first${meant}.`;
    by("told").textContent = text;
  };

  // A task without subsets has one with the name of the task.
  const word = (name, item) => {
    const text = names[name][columns[name][item]];
    return name === "subset" && text === names.task[columns.task[item]] ? "" : text;
  };
  const cell = (name, row) => {
    const text = make("span", isText(name) ? valueOf(row, name) : number(valueOf(row, name), decimals[name]));
    const field = make("td", [text], { className: name.startsWith("missed") ? "text missed" : isText(name) ? "text" : "num", dir: "auto" });
    field.dataset.name = heading[name];
    return field;
  };
  const head = (list) => {
    const title = hasTwo(members()[0]) ? "Sentences" : unit() === "queries" ? "Query" : "Sentence";
    const heads = list.map((name) => page.head(name, heading[name], help[name], isText(name)));
    by("rows").querySelector("thead tr").replaceChildren(page.head("", "Item", "Order of the data.", true), ...(data.sentences ? [make("th", title, { scope: "col" })] : []), ...heads);
  };
  const body = (rows, list) => {
    by("rows").querySelector("tbody").replaceChildren(...page.pageOf(rows, PAGE).map((items) => {
      const [item] = items, open = make("button", columns.item_id[item], { type: "button", value: String(item) });
      const tasks = chosen().tasks.length > 1 ? [make("small", items.map((own) => word("task", own)).join(", "))] : [];
      const sides = data.sentences ? [make("td", sidesOf(item).map((side) => make("span", data.sentences[side], { dir: "auto" })), { className: "sentences" })] : [];
      const cells = [make("td", [open, ...tasks]), ...sides, ...list.map((name) => cell(name, items))];
      const row = make("tr", cells, { className: items.includes(Number(state.open || "NaN")) ? "open" : "" });
      // A click beside a marked text keeps the mark.
      row.addEventListener("click", () => {
        if (!getSelection().isCollapsed) return;
        state.open = String(item);
        show();
        by("rows").querySelector("tr.open").scrollIntoView({ block: "nearest" });
        for (const scrolled of [by("detail"), by("detail").parentElement]) scrolled.scrollTop = 0;
        by("detail-title").focus({ preventScroll: true });
      });
      return row;
    }));
  };
  const hasTwo = (item) => isRanked() || columns.first[item] !== columns.second[item];
  const sidesOf = (item) => [columns.first[item], columns.second[item]].slice(0, hasTwo(item) ? 2 : 1);

  // A sentence with marked words that the other one does not have.
  const marked = (text, other) => {
    const known = new Set(other.toLowerCase().split(/\s+/));
    return make("p", text.split(/(\s+)/).map((part) => (/\S/.test(part) && !known.has(part.toLowerCase()) ? make("mark", part) : part)), { className: "sentence", dir: "auto" });
  };
  const detail = (list) => {
    const item = state.open === "" ? NaN : Number(state.open), here = Number.isInteger(item) && item >= 0 && item < size;
    by("detail").hidden = !here;
    if (!here) return;
    by("detail-title").textContent = `${names.task[columns.task[item]]}, item ${columns.item_id[item]}`;
    const texts = data.sentences ? sidesOf(item).map((side) => data.sentences[side]) : [];
    const facts = list.flatMap((name) => isText(name) && !word(name, item) ? [] : [make("dt", heading[name]), make("dd", isText(name) ? word(name, item) : number(columns[name][item], decimals[name]), { dir: "auto", className: name.startsWith("missed") ? "long" : "" })]);
    by("pair").replaceChildren(...texts.map((text, side) => marked(text, texts[1 - side] ?? text)), make("dl", facts, { className: "facts" }));
    if (!isRanked()) return;
    const apart = (other) => Math.abs(columns.gold[other] - columns.gold[item]);
    const near = itemsOf(columns.task[item]).filter((other) => other !== item).sort((a, b) => apart(a) - apart(b) || Math.abs(a - item) - Math.abs(b - item)).slice(0, NEAR);
    const others = near.map((other) => {
      const told = ends.map((end) => `similarity${of(end)} ${number(columns[`similarity_${end}`][other], 3)}`).join(", ");
      const text = data.sentences ? sidesOf(other).map((side) => `“${data.sentences[side]}”`).join(" and ") : `item ${columns.item_id[other]}`;
      return make("li", `${number(columns.gold[other])}, ${told}: ${text}`, { dir: "auto" });
    });
    by("pair").append(make("p", "Pairs with nearly the same gold score:"), make("ul", others));
  };

  const chips = () => by("chips").replaceChildren(
    ...page.rangeChips((name) => heading[name], (name) => decimals[name]),
    ...Object.entries(state.kept).map(([name, value]) => page.chip(`${heading[name]} is ${value}`, () => delete state.kept[name])),
  );

  const confusion = () => {
    by("confusion").hidden = !(isLabelled() && chosen().tasks.length === 1);
    if (by("confusion").hidden) return;
    const items = members(), table = by("confusion").querySelector("table");
    // A classifier may predict a label that none of these items has.
    const found = (...of_) => [...new Set(items.flatMap((item) => of_.map((name) => word(name, item))))].sort();
    const labels = found("label"), predictions = found("label", ...ends.map((end) => `prediction_${end}`));
    table.replaceChildren();
    for (const end of ends) {
      const name = `prediction_${end}`;
      table.append(make("tr", [make("th", two ? `Predicted by ${end.toUpperCase()}` : "Predicted", { scope: "col" }), ...predictions.map((said) => make("th", said, { scope: "col" }))]));
      const counts = new Map();
      for (const item of items) {
        const key = `${columns.label[item]} ${columns[name][item]}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      for (const label of labels) {
        const cells = predictions.map((said) => {
          const key = `${names.label.indexOf(label)} ${names[name].indexOf(said)}`;
          const button = make("button", count(counts.get(key) ?? 0), { type: "button" });
          button.setAttribute("aria-label", `${counts.get(key) ?? 0} of label ${label} and prediction ${said}: show them`);
          button.addEventListener("click", () => {
            Object.assign(state.kept, { label, [name]: said });
            page.redraw();
            controls();
          });
          return make("td", [button], { className: label === said ? "right" : counts.has(key) ? "wrong" : "" });
        });
        table.append(make("tr", [make("th", label, { scope: "row" }), ...cells]));
      }
    }
  };

  const axes = () => {
    const numeric = shown().filter((name) => !isText(name));
    const usual = (wanted, other) => (numeric.includes(wanted) ? wanted : numeric.find((name) => name !== other) ?? "");
    const x = usual(state.x || "gold", ""), y = usual(state.y || "similarity_a", x);
    return { numeric, x, y };
  };
  const LAYERS = 64;
  const draw = (items) => {
    const { x, y } = axes();
    by("drawing").hidden = !(isRanked() && x && y);
    if (by("drawing").hidden) return;
    const all = members(), axis = (name) => ({ title: heading[name], values: all.map((item) => columns[name][item]) });
    const label = `${heading[y]} against ${heading[x]} of ${count(all.length)} items, ${count(items.length)} of them chosen.`;
    const chart = Chart.of(by("picture"), axis(x), axis(y), { role: "img", "aria-label": label });
    // Dense points are more transparent, so dark areas have many points. Within a path, points do not add up: a set has several.
    const dots = (some, kind, most) => {
      const opacity = Math.min(most, Math.max(0.12, 900 / some.length)), layers = Array.from({ length: LAYERS }, () => []);
      some.forEach((item, place) => layers[place % LAYERS].push([columns[x][item], columns[y][item]]));
      for (const points of layers) chart.mark(points, 1.8, { class: kind, "fill-opacity": opacity });
    };
    if (items.length < all.length) dots(all, "others", 0.25);
    dots(items, "", 0.8);
    chart.onBox((xs, ys) => {
      page.setRange(x, xs);
      page.setRange(y, ys);
      page.redraw();
      controls();
    });
  };

  const controls = () => {
    options(by("task"), choices.map((choice, place) => [String(place), choice.name]), state.task);
    if (by("words")) by("words").value = state.q;
    by("verdict-label").hidden = !canBeWrong();
    options(by("verdict"), [["", "All"], ...Object.entries(VERDICTS).map(([key, [text]]) => [key, text])], state.verdict);
    by("presets").hidden = !canBeWrong();
    const { numeric, x, y } = axes();
    options(by("across"), numeric.map((name) => [name, heading[name]]), x);
    options(by("up"), numeric.map((name) => [name, heading[name]]), y);
    const texts = shown().filter((name) => isText(name) && name !== "task" && !name.startsWith("missed")).map((name) => {
      const select = make("select");
      const known = [...new Set(members().map((item) => names[name][columns[name][item]]))].sort();
      options(select, [["", "any"], ...known.filter(Boolean).map((value) => [value, value])], state.kept[name] ?? "");
      select.addEventListener("change", () => {
        if (select.value === "") delete state.kept[name]; else state.kept[name] = select.value;
        page.redraw();
      });
      return make("fieldset", [make("legend", heading[name]), make("label", ["is ", select])]);
    });
    by("ranges").replaceChildren(...texts, ...numeric.map((name) => page.rangeField(name, heading[name])));
    by("columns").replaceChildren(...shown().flatMap((name) => [make("dt", heading[name]), make("dd", help[name])]));
  };

  const show = () => {
    const list = shown(), items = filtered();
    tell(items);
    chips();
    const fitting = list.filter((name) => (IN_TABLE.has(name) && !(name === "subset" && data.sentences)) || name === state.sort.replace("-", ""));
    head(fitting);
    body(sorted(merged(items)), fitting);
    confusion();
    draw(items);
    detail(list);
    page.write();
  };
  const page = Table.of({ state, usual: USUAL, names, repair, isNumeric: (name) => has(name) && Number.isInteger(decimals[name]), show, controls });
  by("presets").replaceChildren(...PRESETS.map(([text, changes]) => {
    const button = make("button", text, { type: "button" });
    button.addEventListener("click", () => { page.redraw(changes); controls(); });
    return button;
  }));
  const changed = (id, name, event = "change") => by(id)?.addEventListener(event, () => {
    state[name] = by(id).value;
    state.page = "1";
    // The difference between two classifiers is explained best by the pairs that contribute most.
    if (name === "verdict" && two && ["gain", "-gain"].includes(state.sort)) state.sort = state.verdict === "b" ? "gain" : "-gain";
    if (name === "task") Object.assign(state, { ranges: {}, kept: {}, open: "", x: "", y: "" });
    show();
    if (["task", "x", "y"].includes(name)) controls();
  });
  changed("task", "task");
  changed("words", "q", "input");
  changed("verdict", "verdict");
  changed("across", "x");
  changed("up", "y");
  by("close").addEventListener("click", () => {
    const item = state.open, buttons = () => [...by("rows").querySelectorAll("tbody button")];
    state.open = "";
    show();
    (buttons().find((button) => button.value === item) ?? buttons()[0])?.focus();
  });

  const table = () => {
    const list = shown(), heads = ["Item", ...(data.sentences ? ["Sentence 1", "Sentence 2"] : []), ...list.map((name) => heading[name])];
    const rows = sorted(filtered().map((item) => [item])).map(([item]) => [columns.item_id[item]].concat(
      data.sentences ? [0, 1].map((side) => data.sentences[sidesOf(item)[side]] ?? "") : [],
      list.map((name) => (isText(name) ? word(name, item) : Number.isNaN(columns[name][item]) ? "" : String(columns[name][item]))),
    ));
    return [heads, ...rows];
  };
  Table.files("pairs", table);

  Chart.onResize(() => draw(filtered()));
  page.start();
})();
