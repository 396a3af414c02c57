"use strict";
// The charts of the pages: scales, axes and points as SVG, a box to select points, and the keyboard.
const Chart = (() => {
  const PAD = { left: 52, right: 14, top: 10, bottom: 38 };
  const element = (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };

  const linearTicks = (low, high, most) => {
    const power = 10 ** Math.floor(Math.log10(high - low)), step = [0.1, 0.2, 0.5, 1, 2].map((share) => share * power).find((size) => (high - low) / size <= Math.min(8, most)) ?? 5 * power;
    const ticks = [];
    for (let place = Math.ceil(low / step); place * step <= high; place++) ticks.push(place * step);
    return ticks;
  };
  // Powers of ten from low to high; with 2 and 5 times each where there is space.
  const logTicks = (low, high, most) => {
    const ticks = [], parts = 3 * (high - low) > most ? [1] : [1, 2, 5];
    for (let power = Math.floor(low); power <= high; power++) ticks.push(...parts.map((part) => part * 10 ** power));
    return ticks.filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
  };
  const labelOf = (tick) => String(Number(tick.toPrecision(6))).replace("-", "\u2212");

  // Maps values to the pixels from start to end, with a margin.
  const scaleOf = ({ values, canBeLog = false }, start, end) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) [low, high] = [0, 1];
    const isLog = canBeLog && low > 0 && high > 30 * low, place = (value) => (isLog ? Math.log10(value) : value);
    const margin = low < high ? 0.04 * (place(high) - place(low)) : 1, first = place(low) - margin, last = place(high) + margin;
    return {
      pixel: (value) => start + (end - start) * (place(value) - first) / (last - first),
      value: (pixel) => { const at = first + (last - first) * (pixel - start) / (end - start); return isLog ? 10 ** at : at; },
      ticks: (most) => (isLog ? logTicks : linearTicks)(first, last, most),
    };
  };

  // Draws the axes of a chart into a box; an axis has a `title`, the `values` that it has to show, and `canBeLog`.
  const of = (box, across, up, attributes) => {
    const width = Math.max(260, box.clientWidth), height = box.clientHeight, right = width - PAD.right, bottom = height - PAD.bottom;
    const image = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, ...attributes });
    const add = (tag, more, text) => image.appendChild(element(tag, more, text));
    const x = scaleOf(across, PAD.left, right), y = scaleOf(up, bottom, PAD.top);
    for (const tick of x.ticks(width / 55)) {
      add("line", { x1: x.pixel(tick), x2: x.pixel(tick), y1: PAD.top, y2: bottom });
      add("text", { x: x.pixel(tick), y: bottom + 16, "text-anchor": "middle" }, labelOf(tick));
    }
    for (const tick of y.ticks(7)) {
      add("line", { x1: PAD.left, x2: right, y1: y.pixel(tick), y2: y.pixel(tick) });
      add("text", { x: PAD.left - 6, y: y.pixel(tick) + 4, "text-anchor": "end" }, labelOf(tick));
    }
    add("text", { x: (PAD.left + right) / 2, y: height - 6, "text-anchor": "middle" }, across.title);
    add("text", { transform: `translate(14 ${(PAD.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, up.title);
    box.replaceChildren(image);

    const interval = (at, low, high) => add("line", { class: "limits", x1: x.pixel(at), x2: x.pixel(at), y1: y.pixel(low), y2: y.pixel(high) });
    // Draws points as one path: with an element for each of 18,850 points, every redraw would take 0.2 to 0.5 s.
    const mark = (points, radius, more) => {
      const arc = (side) => `a${radius} ${radius} 0 1 0 ${2 * side * radius} 0`, circle = `${arc(1)}${arc(-1)}`;
      const places = points.filter((point) => !point.some(Number.isNaN)).map(([left, top]) => `M${(x.pixel(left) - radius).toFixed(1)} ${y.pixel(top).toFixed(1)}${circle}`);
      return add("path", { d: places.join(""), ...more });
    };
    // Calls `choose` with the limits of a drawn box on both axes: NaN for one at the edge of the chart, where a rounded
    // number would exclude points, and for all after a click without dragging.
    const onBox = (choose) => {
      let start = null, frame = null;
      const within = (low, high, pixel) => Math.min(high, Math.max(low, pixel));
      const at = (event) => {
        const corner = image.getBoundingClientRect();
        return [within(PAD.left, right, event.clientX - corner.left), within(PAD.top, bottom, event.clientY - corner.top)];
      };
      const sides = (event) => at(event).map((pixel, axis) => [pixel, start[axis]].toSorted((a, b) => a - b));
      const limit = (scale, pixel, edge) => (pixel === edge ? NaN : Number(scale.value(pixel).toPrecision(4)));
      image.addEventListener("pointerdown", (event) => {
        image.setPointerCapture(event.pointerId);
        start = at(event);
        frame = add("rect", { class: "box" });
      });
      image.addEventListener("pointermove", (event) => {
        if (!start) return;
        const [[x1, x2], [y1, y2]] = sides(event);
        for (const [name, size] of Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 })) frame.setAttribute(name, size);
      });
      image.addEventListener("pointerup", (event) => {
        if (!start) return;
        const [[x1, x2], [y1, y2]] = sides(event);
        if (x2 - x1 < 4 && y2 - y1 < 4) choose([NaN, NaN], [NaN, NaN]);
        else choose([limit(x, x1, PAD.left), limit(x, x2, right)], [limit(y, y2, bottom), limit(y, y1, PAD.top)]);
      });
      image.addEventListener("pointercancel", () => { start = null; frame?.remove(); });
    };
    return { interval, mark, onBox };
  };

  // Makes the points of a drawing a single tab stop; arrow keys move between them.
  const addKeys = (drawing, points) => {
    points.forEach((point, place) => point.setAttribute("tabindex", place ? "-1" : "0"));
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] ?? 0;
      const here = points.indexOf(document.activeElement), next = points[here + step];
      if (!step || here < 0 || !next) return;
      points[here].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
      event.preventDefault();
    });
  };

  const onResize = (draw) => {
    let waiting = 0;
    addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw); });
  };
  return { of, element, addKeys, onResize };
})();
