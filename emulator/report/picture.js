"use strict";
// Gives a picture a cursor that shows states and events, zoom, and the chain of events of one cause.
const attachPicture = (svg, data, box, kept) => {
  const NEAR_PX = 7, DRAG_MIN = 12, NARROWEST = 2, TICKS_MAX = 12, TICK_GAP = 42;
  const drawn = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const cursor = svg.querySelector(".cursor");
  const chain = svg.parentElement.querySelector(".chain");
  const fullWidth = svg.viewBox.baseVal.width, fullHeight = svg.viewBox.baseVal.height;
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
  let place = -1, from = null, selection = null, shown = null;

  const toPicture = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const seconds = (time) => `${(time / 1e6).toFixed(3)} s`;
  const timeAt = (x) => {
    for (let i = 1; i < data.knots.length; i++) {
      const [t0, x0] = data.knots[i - 1], [t1, x1] = data.knots[i];
      if (x <= x1) return t0 + ((Math.max(x, x0) - x0) / Math.max(x1 - x0, 1e-6)) * (t1 - t0);
    }
    return data.knots[data.knots.length - 1][0];
  };
  const placeAt = (time) => {
    for (let i = 1; i < data.knots.length; i++) {
      const [t0, x0] = data.knots[i - 1], [t1, x1] = data.knots[i];
      if (time <= t1) return x0 + ((time - t0) / Math.max(t1 - t0, 1)) * (x1 - x0);
    }
    return right;
  };
  const lastOf = (points, time) => {
    let last = null;
    for (const [t, value] of points) { if (t > time) break; last = value; }
    return last;
  };

  const wordsAt = (time) => {
    const lines = [seconds(time)];
    const state = lastOf(data.states, time);
    if (state !== null) lines.push(state);
    for (const broker of data.brokers) {
      const notes = broker.spans.filter((span) => span[0] <= time && time < span[1]).map((span) => span[2]);
      const end = lastOf(broker.ends, time) ?? 0, flushed = lastOf(broker.flushed, time);
      if (flushed !== null) notes.unshift(end <= flushed ? "all on disk" : `on disk to ${flushed}`);
      lines.push(`broker ${broker.id}: log ends at ${end}${notes.length ? "; " + notes.join(", ") : ""}`);
    }
    return lines;
  };
  const show = (time, x, y, edge) => {
    shown = edge;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.style.visibility = "visible";
    const lines = wordsAt(time);
    if (edge) {
      const cause = edge[6] >= 0 ? `, cause ${data.causes[edge[6]][0]}` : "", more = cause && chain ? "\nclick or Enter: what followed from it" : "";
      lines.splice(1, 0, `${edge[4]}\n${edge[5]}${cause}${more}\n`);
    }
    box.textContent = lines.join("\n");
    box.hidden = false;
    svg.style.setProperty("cursor", edge && edge[6] >= 0 && chain ? "pointer" : "crosshair");
    const screen = new DOMPoint(x, y ?? 30).matrixTransform(svg.getScreenCTM()), wide = box.offsetWidth;
    box.style.setProperty("left", `${Math.max(4, screen.x + 14 + wide > innerWidth ? screen.x - wide - 14 : screen.x + 14)}px`);
    box.style.setProperty("top", `${Math.max(4, Math.min(screen.y + (y ? 14 : 0), innerHeight - box.offsetHeight - 4))}px`);
  };
  const hide = () => { cursor.style.visibility = "hidden"; box.hidden = true; shown = null; };
  const edgeAt = (point) => {
    const near = NEAR_PX / svg.getScreenCTM().a;
    let best = null, distance = near;
    for (const edge of data.edges) {
      const apart = Math.abs(edge[1] - point.x);
      if (apart <= distance && edge[2] - 12 <= point.y && point.y <= edge[3] + 4) { best = edge; distance = apart; }
    }
    return best;
  };

  const follow = (edge) => {
    if (!chain || !edge || edge[6] < 0) return;
    const [name, leftOut, events] = data.causes[edge[6]];
    const rows = events.map(([time, who, text, where]) => {
      const row = document.createElement("tr");
      for (const words of [seconds(time), who, text, where]) row.append(Object.assign(document.createElement("td"), { textContent: words }));
      row.firstChild.className = "num";
      return row;
    });
    chain.querySelector(".chain-name").textContent = `${edge[4]}: what followed from cause ${name}${leftOut ? `, and ${leftOut} more events` : ""}`;
    chain.querySelector("tbody").replaceChildren(...rows);
    chain.hidden = false;
    chain.focus();
  };
  if (chain) {
    const close = () => { chain.hidden = true; svg.focus(); };
    chain.querySelector("button").onclick = close;
    chain.onkeydown = (event) => { if (event.key === "Escape") close(); };
  }

  // Names of lanes stay at the left, on a strip that covers what is before the begin.
  const names = [...svg.querySelectorAll("text.label, text.side")].filter((each) => each.getAttribute("text-anchor") === "end");
  const strip = drawn("rect", { class: "name-strip", width: 0, height: fullHeight });
  svg.append(strip, ...names);
  const layers = drawn("defs", {}), ticks = svg.querySelector(".ticks"), zoomedTicks = drawn("g", { class: "zoomed-ticks" });
  svg.append(layers, zoomedTicks);
  const blockLabels = [...svg.querySelectorAll("text[data-words]")].map((text) => [text, text.textContent]);
  let view = null;

  // A picture is zoomed by stretching it: what must not be wider is laid anew.
  const lay = (begin, end) => {
    const ratio = (fullWidth - left) / (end - begin), narrow = `scale(${1 / ratio} 1)`;
    for (const label of svg.querySelectorAll("text:not([data-words]), .disc circle")) {
      const at = Number(label.getAttribute("x") || label.getAttribute("cx") || 0);
      label.setAttribute("transform", `translate(${at} 0) ${narrow} translate(${-at} 0)`);
    }
    for (const disc of svg.querySelectorAll(".disc[data-aside]")) disc.setAttribute("transform", `translate(${disc.dataset.aside / ratio} 0)`);
    for (const [text] of blockLabels) {
      const edge = Number(text.getAttribute("x")), from = Math.max(edge, begin), until = Math.min(Number(text.dataset.right), end);
      const room = (until - from) * ratio - Number(text.getAttribute("dx")) - 3;
      text.textContent = text.dataset.words.split("|").find((words) => ((text.textContent = words), text.getComputedTextLength() <= room)) ?? "";
      text.setAttribute("transform", `translate(${from} 0) ${narrow} translate(${-edge} 0)`);
    }
    layers.replaceChildren();
    for (const pattern of document.querySelectorAll(".defs pattern")) {
      const own = pattern.cloneNode(true), kind = pattern.id.replace(/-pattern$/, "");
      own.id = `${svg.id}-${pattern.id}`;
      own.setAttribute("patternTransform", narrow);
      layers.append(own);
      for (const filled of svg.querySelectorAll(`.${kind}`)) filled.style.setProperty("fill", `url(#${own.id})`);
    }
    for (const name of names) name.setAttribute("transform", `translate(${begin - left / ratio} 0) ${narrow}`);
    tick(begin, end, narrow);
  };
  const tick = (begin, end, narrow) => {
    const [t0, t1] = [timeAt(begin) / 1e6, timeAt(end) / 1e6], y = Number(ticks.dataset.y), steps = [];
    for (let power = 1e-4; power <= 1e4; power *= 10) steps.push(power, 2 * power, 5 * power);
    const step = steps.find((each) => (t1 - t0) / each <= TICKS_MAX), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const gap = (TICK_GAP * (end - begin)) / (fullWidth - left);
    zoomedTicks.replaceChildren();
    for (let number = Math.ceil(t0 / step - 1e-9), last = -Infinity; number * step <= t1 + 1e-9; number++) {
      const x = placeAt(number * step * 1e6);
      if (x - last < gap) continue;
      last = x;
      const words = drawn("text", { class: "note", x, y: y + 11, "text-anchor": "middle", transform: `translate(${x} 0) ${narrow} translate(${-x} 0)` });
      words.textContent = `${(number * step).toFixed(digits)} s`;
      zoomedTicks.append(drawn("line", { class: "tick", x1: x, x2: x, y1: y - 4, y2: y }), words);
    }
    ticks.style.setProperty("display", "none");
  };
  const zoom = (begin, end) => {
    const ratio = (fullWidth - left) / (end - begin), start = begin - left / ratio;
    view = [begin, end];
    svg.setAttribute("viewBox", `${start} 0 ${fullWidth / ratio} ${fullHeight}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.style.setProperty("aspect-ratio", `${fullWidth} / ${fullHeight}`);
    lay(begin, end);
    strip.setAttribute("x", start);
    strip.setAttribute("width", left / ratio);
    kept.span = [timeAt(begin), timeAt(end)];
  };
  const all = () => {
    view = null;
    svg.setAttribute("viewBox", `0 0 ${fullWidth} ${fullHeight}`);
    svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
    for (const label of svg.querySelectorAll("text, .disc circle")) label.removeAttribute("transform");
    for (const disc of svg.querySelectorAll(".disc[data-aside]")) disc.setAttribute("transform", `translate(${disc.dataset.aside} 0)`);
    for (const [text, words] of blockLabels) text.textContent = words;
    for (const filled of svg.querySelectorAll("[style*='fill']")) filled.style.removeProperty("fill");
    layers.replaceChildren();
    zoomedTicks.replaceChildren();
    ticks.style.removeProperty("display");
    strip.setAttribute("width", 0);
    kept.span = null;
  };
  // Shows a part of the run that is so wide, around a place, and no more than all of it.
  const around = (middle, width) => {
    if (width >= right - left) { all(); return; }
    const begin = Math.min(Math.max(middle - width / 2, left), right - width);
    zoom(begin, begin + width);
  };
  const nearer = (factor) => {
    const [begin, end] = view ?? [left, right];
    const at = cursor.style.visibility === "visible" ? Number(cursor.getAttribute("x1")) : (begin + end) / 2;
    around(at, Math.max((end - begin) * factor, NARROWEST));
  };
  if (kept.span) zoom(placeAt(kept.span[0]), placeAt(kept.span[1]));

  const showAt = (point) => {
    if (point.x < left || point.x > right) { hide(); return; }
    const edge = edgeAt(point);
    if (edge) show(edge[0], edge[1], point.y, edge); else show(timeAt(point.x), point.x, point.y, null);
  };
  svg.addEventListener("pointermove", (event) => {
    const point = toPicture(event);
    if (selection) {
      selection.setAttribute("x", Math.min(from, point.x));
      selection.setAttribute("width", Math.abs(point.x - from));
      return;
    }
    showAt(point);
  });
  svg.addEventListener("pointerleave", () => { if (!selection) hide(); });
  svg.addEventListener("pointerdown", (event) => {
    const { x } = toPicture(event);
    if (event.button !== 0 || event.target.closest("a") || x < left || x > right) return;
    from = x;
    kept.isBusy = true;
    selection = drawn("rect", { class: "selection", height: fullHeight });
    svg.append(selection);
    svg.setPointerCapture(event.pointerId);
  });
  const drop = () => {
    selection?.remove();
    from = selection = null;
    kept.isBusy = false;
  };
  svg.addEventListener("pointercancel", drop);
  svg.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const x = Math.min(Math.max(toPicture(event).x, left), right), begin = Math.min(from, x), end = Math.max(from, x);
    drop();
    if (end - begin > DRAG_MIN / svg.getScreenCTM().a) {
      around((begin + end) / 2, Math.max(end - begin, NARROWEST));
      showAt(toPicture(event));
    } else follow(shown);
  });
  svg.addEventListener("dblclick", (event) => { all(); showAt(toPicture(event)); });
  svg.addEventListener("keydown", (event) => {
    if (event.target !== svg) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") { all(); hide(); return; }
    if (event.key === "Enter") { follow(shown); return; }
    if (event.key === "+" || event.key === "-") { nearer(event.key === "+" ? 0.5 : 2); return; }
    if (!step || !data.edges.length) return;
    event.preventDefault();
    place = Math.min(Math.max(place + step, 0), data.edges.length - 1);
    const edge = data.edges[place];
    if (view && (edge[1] < view[0] || edge[1] > view[1])) around(edge[1], view[1] - view[0]);
    show(edge[0], edge[1], null, edge);
  });
  svg.addEventListener("blur", hide);
};
