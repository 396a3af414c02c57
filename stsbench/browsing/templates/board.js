"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { by, make, number, count, once, options } = Table;
  const PAGE = 100, PERCENT = `${Number((100 * data.level).toPrecision(6))} %`, ALPHA = `${Number((100 - 100 * data.level).toPrecision(6))} %`;

  const USUAL = { table: "0", q: "", alike: "", published: "", sort: "", page: "1", a: "", b: "", x: "", y: "", columns: "" };
  const state = { ...USUAL, ranges: {} };
  const section = () => data.sections[state.table];

  // For each column: heading, decimals (null for text), description, and whether it is shown by default.
  const columns = once(() => {
    const { columns: tasks, letters } = section(), list = [["name", "Model", null, "What was measured.", true]];
    // The columns used for sorting come first.
    const inOrder = [...tasks.entries()].sort(([, one], [, other]) => other.is_average - one.is_average);
    inOrder.forEach(([place, { name, is_average: isAverage }]) => {
      const what = isAverage ? "The mean of its tasks" : "The score on the task";
      list.push([`s${place}`, name, 2, `${what} x 100, with its ${PERCENT} interval as a bar; point at it for the numbers.`, true]);
      if (letters[name]) list.push([`g${place}`, tasks.length > 1 ? `Groups of ${name}` : "Groups", null, `Runs that share a letter do not differ significantly on ${name} (${ALPHA}, corrected for all pairs).`, true]);
    });
    return [...list, ...data.facts.map(({ name, heading, decimals, help, shown }) => [name, heading, decimals, help, shown])];
  }, () => state.table);
  const shown = () => {
    const turned = new Set(state.columns.split(",").filter(Boolean));
    return columns().filter(([id, , , , usual]) => id === "name" || usual !== turned.has(id));
  };
  const known = once(() => new Map(columns().map((own) => [own[0], own])), () => state.table);
  const column = (id) => known().get(id);
  const heading = (id) => column(id)[1];
  const isText = (id) => column(id)[2] === null;

  const headline = () => `s${section().columns.findIndex((task) => task.is_headline)}`;
  const repair = () => {
    if (!Object.hasOwn(data.sections, state.table) || state.table === "length") state.table = "0";
    if (!column(state.sort.replace("-", ""))) state.sort = `-${headline()}`;
  };
  // Letters are joined without spaces, the numbers of more than 52 groups with spaces.
  const groupText = (groups) => groups.join(groups.every((name) => /^\p{L}$/u.test(name)) ? "" : " ");
  // A line of the table: a run or a published row.
  const isAlike = (place) => Object.values(section().ties).every((places) => places.includes(place));
  const tied = once(() => section().runs.filter((_, place) => isAlike(place)), () => state.table);
  const lines = once(() => {
    const { runs, published, letters, columns: tasks } = section();
    const list = [];
    const letter = Object.fromEntries(Object.entries(letters).map(([name, of]) => [name, new Map(of)]));
    runs.forEach((run, place) => {
      const groups = Object.fromEntries(tasks.map(({ name }, index) => [`g${index}`, groupText(letter[name]?.get(place) ?? [])]));
      list.push({ ...run, ...groups, place, of: "run" });
    });
    if (state.published) for (const row of published) list.push({ name: row.name, under: row.row, about: row.source, scores: row.scores.map((value) => [value ?? null, null, null]), of: "paper" });
    return list;
  }, () => [state.table, state.published].join());
  const scored = (line, id) => (/^s\d+$/.test(id) ? line.scores[Number(id.slice(1))] : null);
  const value = (line, id) => {
    const score = scored(line, id);
    return score ? score[0] : line[id] ?? (isText(id) ? "" : null);
  };

  const filtered = () => {
    const words = Table.words(state.q), texts = columns().filter(([, , digits]) => digits === null).map(([id]) => id);
    return lines().filter((line) => {
      if (state.alike && line.of === "run" && !isAlike(line.place)) return false;
      const said = words.length ? `${line.under ?? ""} ${line.about ?? ""} ${texts.map((id) => value(line, id)).join(" ")}`.toLowerCase() : "";
      if (!words.every((word) => said.includes(word))) return false;
      return Object.entries(state.ranges).every(([id, [low, high]]) => {
        const own = value(line, id);
        return own !== null && !(own < low) && !(own > high);
      });
    });
  };
  const sorted = (list) => Table.sorted(list, state.sort, value);

  const placeOf = (run) => (run === "" ? -1 : section().runs.findIndex((own) => own.run === run));
  const picked = () => [placeOf(state.a), placeOf(state.b)].filter((place) => place >= 0);
  const pick = (run) => {
    if (state.a === run) [state.a, state.b] = [state.b, ""];
    else if (state.b === run) state.b = "";
    else if (placeOf(state.a) < 0) state.a = run;
    else state.b = run;
  };

  // The sentence of `compare`.
  const sentence = (one, other) => {
    const { compared, sentences } = section(), [low, high] = [compared.indexOf(one), compared.indexOf(other)].sort((x, y) => x - y);
    if (low < 0) return null;
    return { a: compared[low], b: compared[high], text: sentences[low * (2 * compared.length - low - 1) / 2 + high - low - 1] };
  };
  const compare = () => {
    const places = picked(), { runs, compared } = section(), box = by("sentence");
    by("two").hidden = !places.length;
    if (places.length < 2) {
      box.replaceChildren(make("p", places.length ? `${runs[places[0]].name} is ticked: tick a second run.` : "", { dir: "auto" }));
      return;
    }
    const found = sentence(...places), [a, b] = found ? [found.a, found.b] : places;
    const why = compared.length ? `The page compares the ${count(compared.length)} highest runs with a score on each task. Compare others by command:` : "These runs have scores only, no pairs to compare.";
    const parts = [make("p", found ? found.text : why, { dir: "auto" })];
    if (found && compared.length > 2) parts.push(make("p", "The groups in the table are corrected for all pairs of runs, this comparison is not."));
    const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const placed = (place) => quoted([data.root, runs[place].run].filter(Boolean).join("/"));
    const command = make("p", [make("code", `stsbench compare ${placed(a)} ${placed(b)}`)]);
    box.replaceChildren(...parts, ...(compared.length ? [command] : []));
  };

  // Settings that all runs share are listed once, above the table.
  const settingsOf = (run) => (run.use ?? "").split("|").filter(Boolean);
  const common = once(() => {
    const [first, ...others] = section().runs.map(settingsOf);
    return new Set(others.length ? first.filter((setting) => others.every((of) => of.includes(setting))) : []);
  }, () => state.table);
  const tell = (list) => {
    const runs = list.filter(({ of }) => of === "run").length, all = section().runs.length;
    const best = tied(), { compared } = section(), some = compared.length && compared.length < all ? ` The ${count(compared.length)} highest are compared with each other.` : "";
    if (best.length && compared.length > 1) by("verdict").textContent = best.length > 1 ? `${count(best.length)} of ${count(all)} runs are tied for the best score` : `${best[0].name} is the best of ${count(all)} runs`;
    else by("verdict").textContent = `${count(all)} ${all > 1 ? "runs" : "run"}`;
    const names = best.length > 1 && best.length <= 3 ? `${best.map(({ name }) => name).join(", ")}. ` : "", settings = common().size ? ` Settings of all: ${[...common()].join(", ")}.` : "";
    by("told").textContent = `${names}${runs < all ? `${count(runs)} of ${count(all)} runs.` : ""}${some}${settings}`;
  };
  const head = (list) => {
    const heads = list.map(([id, title, digits, help]) => page.head(id, title, help, digits === null));
    by("rows").querySelector("thead tr").replaceChildren(make("th", "Compare", { scope: "col" }), ...heads);
  };
  // An interval as a bar between the lowest and the highest limit of its column, the score as a dot.
  const extents = once(() => section().columns.map((_, index) => {
    const limits = section().runs.flatMap((run) => run.scores[index].slice(1)).filter((limit) => limit !== null);
    return [Math.min(...limits), Math.max(...limits)];
  }), () => state.table);
  const bar = (id, [score, low, high]) => {
    const [left, right] = extents()[Number(id.slice(1))], share = (own) => `${100 * (own - left) / (right - left || 1)}%`;
    const part = make("span"), dot = make("i");
    Object.assign(part.style, { left: share(low), right: `calc(100% - ${share(high)})` });
    dot.style.left = share(score);
    return make("span", [part, dot], { className: "bar" });
  };
  const cell = (line, [id, , digits]) => {
    if (id === "name") {
      const name = make("td", line.name, { className: "name", dir: "auto", title: line.about ?? "" });
      if (line.under) name.append(make("small", line.under));
      if (line.of === "run" && section().compared.length && isAlike(line.place)) name.append(" ", make("span", tied().length > 1 ? "tied with the best" : "best", { className: "chip" }));
      return name;
    }
    const own = value(line, id);
    if (id === "use") {
      const settings = settingsOf(line).filter((setting) => !common().has(setting));
      return make("td", settings.map((setting) => make("span", setting, { className: "chip" })), { className: "text", dir: "auto" });
    }
    if (digits === null) return make("td", own, { className: "text", dir: "auto" });
    const field = make("td", number(own, digits), { className: own === null ? "num missing" : "num" }), score = scored(line, id);
    if (score && score[1] !== null) field.append(bar(id, score), make("span", ` [${number(score[1])}, ${number(score[2])}]`, { className: section().columns[Number(id.slice(1))].is_headline ? "limits" : "spoken" }));
    if (score && score[1] !== null) field.title = `${PERCENT} interval: ${number(score[1])} to ${number(score[2])}`;
    return field;
  };
  const body = (list, titles) => {
    const chosen = new Set(picked());
    by("rows").querySelector("tbody").replaceChildren(...page.pageOf(list, PAGE).map((line) => {
      const isPicked = line.of === "run" && chosen.has(line.place), first = make("td");
      const row = make("tr", "", { className: isPicked ? "picked" : line.of === "paper" ? "other" : "" });
      if (line.of === "run") {
        const box = make("input", "", { type: "checkbox", checked: isPicked });
        box.setAttribute("aria-label", `Compare ${line.name}`);
        box.addEventListener("change", () => {
          pick(line.run);
          show();
          [...by("rows").querySelectorAll("tbody input")].find((other) => other.dataset.run === line.run)?.focus({ preventScroll: true });
          // The comparison of two runs is below the table.
          if (picked().length > 1) by("two").scrollIntoView({ block: "nearest" });
        });
        box.dataset.run = line.run;
        first.append(box);
      } else first.textContent = "published";
      row.append(first, ...titles.map((title) => cell(line, title)));
      return row;
    }));
  };

  const numericFacts = () => data.facts.filter(({ name, decimals }) => decimals !== null && section().runs.some((run) => run[name] !== null && run[name] !== undefined));
  const axes = () => {
    const facts = numericFacts().map(({ name }) => name), tasks = section().columns.map((_, index) => `s${index}`);
    // By default the cost of the table in which runs differ most.
    const values = (name) => column(name)[4] * new Set(section().runs.map((run) => run[name])).size;
    const x = facts.includes(state.x) ? state.x : facts.toSorted((one, other) => values(other) - values(one))[0];
    return { facts, tasks, x, y: tasks.includes(state.y) ? state.y : headline() };
  };
  const draw = (list) => {
    const { x, y } = axes(), dots = list.filter((line) => line.of === "run" && x && value(line, x) !== null && value(line, y) !== null);
    by("drawing").hidden = !x;
    if (!x) return;
    const across = { title: heading(x), values: dots.map((line) => value(line, x)), canBeLog: true };
    const up = { title: heading(y), values: dots.flatMap((line) => scored(line, y).filter((score) => score !== null)) };
    const chart = Chart.of(by("picture"), across, up, { role: "group", "aria-label": `${heading(y)} against ${heading(x)} of ${count(dots.length)} runs.` });
    const chosen = new Set(picked()), few = dots.length <= 60;
    const points = dots.map((line) => {
      const [score, low, high] = scored(line, y), at = value(line, x);
      if (few && low !== null) chart.interval(at, low, high);
      const kinds = [isAlike(line.place) && section().compared.length ? "alike" : "", chosen.has(line.place) ? "picked" : ""].filter(Boolean).join(" ");
      const said = `${line.name}: ${heading(y)} ${number(score)}${low === null ? "" : ` [${number(low)}, ${number(high)}]`}, ${heading(x)} ${number(at, column(x)[2])}${kinds.includes("alike") ? ", tied with the best" : ""}`;
      const point = chart.mark([[at, score]], few ? 5 : 3.5, { class: kinds, role: "img", "aria-label": said });
      point.append(Chart.element("title", {}, said));
      point.addEventListener("click", () => { pick(line.run); show(); });
      return point;
    });
    Chart.addKeys(by("picture").firstChild, points);
  };

  const choose = (table) => {
    Object.assign(state, USUAL, { table, ranges: {} });
    repair();
    show();
    controls();
  };
  const controls = () => {
    const { published, compared, letters } = section();
    options(by("table"), data.sections.map(({ name, runs }, place) => [String(place), `${count(runs.length)} ${runs.length > 1 ? "runs" : "run"}: ${name}`]), state.table);
    by("apart").replaceChildren(...data.sections.flatMap(({ why, runs }, place) => {
      if (!why) return [];
      const button = make("button", `${count(runs.length)} ${runs.length > 1 ? "runs" : "run"}`, { type: "button" });
      button.addEventListener("click", () => { choose(String(place)); by("table").focus(); });
      return [make("li", [button, make("span", `: ${why}.`, { dir: "auto" })])];
    }));
    // A long list would come before its table.
    const others = by("apart").children.length;
    by("others").hidden = !others;
    by("others").open = others <= 3;
    by("others").querySelector("summary").textContent = `${others} more ${others > 1 ? "tables" : "table"}, whose scores do not compare with these`;
    by("table").parentElement.hidden = data.sections.length < 2;
    by("words").value = state.q;
    by("alike-label").hidden = compared.length < 2;
    by("alike-label").querySelector("span").textContent = `Tied with the best (${Object.keys(letters).join(", ")})`;
    by("published-label").hidden = !published.length;
    for (const name of ["alike", "published"]) by(name).checked = Boolean(state[name]);
    const visible = new Set(shown().map(([id]) => id)), { facts, tasks, x, y } = axes();
    by("choose").querySelector("div").replaceChildren(...columns().slice(1).map(([id, title]) => {
      const input = make("input", "", { type: "checkbox", checked: visible.has(id) });
      input.addEventListener("change", () => {
        const turned = new Set(state.columns.split(",").filter(Boolean));
        if (!turned.delete(id)) turned.add(id);
        state.columns = [...turned].join(",");
        show();
      });
      return make("label", [input, ` ${title}`]);
    }));
    options(by("across"), facts.map((id) => [id, heading(id)]), x);
    options(by("up"), tasks.map((id) => [id, heading(id)]), y);
    by("ranges").replaceChildren(...[...tasks, ...facts].map((id) => page.rangeField(id, heading(id))));
    by("columns").replaceChildren(...columns().flatMap(([, title, , help]) => [make("dt", title), make("dd", help)]));
  };

  const show = () => {
    const titles = shown(), list = sorted(filtered());
    tell(list);
    by("chips").replaceChildren(...page.rangeChips(heading, (id) => column(id)[2]));
    compare();
    head(titles);
    body(list, titles);
    draw(list);
    page.write();
  };
  const page = Table.of({ state, usual: USUAL, names: {}, repair, isNumeric: (id) => column(id) && !isText(id), show, controls });
  const changed = (id, name, event = "change") => by(id).addEventListener(event, () => {
    page.redraw({ [name]: by(id).type === "checkbox" ? (by(id).checked ? "1" : "") : by(id).value });
  });
  changed("words", "q", "input");
  changed("alike", "alike");
  changed("published", "published");
  changed("across", "x");
  changed("up", "y");
  by("table").addEventListener("change", () => choose(by("table").value));
  const table = () => {
    const titles = shown(), isScore = (id) => /^s\d+$/.test(id), tail = (100 - 100 * data.level) / 2;
    const heads = titles.flatMap(([id, title]) => (isScore(id) ? [title, `${title} ${tail.toPrecision(2)} %`, `${title} ${(100 - tail).toPrecision(3)} %`] : [title]));
    const text = (own) => (own === null ? "" : String(own));
    const rows = sorted(filtered()).map((line) => titles.flatMap(([id]) => (isScore(id) ? scored(line, id).map(text) : [text(value(line, id))])));
    return [heads, ...rows];
  };
  Table.files("board", table);

  Chart.onResize(() => draw(sorted(filtered())));
  page.start();
})();
