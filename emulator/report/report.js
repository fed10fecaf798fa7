"use strict";
// Adds hover and zoom. Without it nothing else is missing.
(() => {
  for (const each of document.querySelectorAll(".with-script")) each.hidden = false;
  const light = (step, disc, on) => {
    for (const each of [step, disc]) if (each) each.classList.toggle("lit", on);
  };
  for (const step of document.querySelectorAll("[data-disc]")) {
    const disc = document.getElementById(step.dataset.disc);
    for (const each of [step, disc]) {
      if (!each) continue;
      each.addEventListener("mouseenter", () => light(step, disc, true));
      each.addEventListener("mouseleave", () => light(step, disc, false));
      each.addEventListener("focus", () => light(step, disc, true));
      each.addEventListener("blur", () => light(step, disc, false));
    }
  }

  const moments = JSON.parse(document.getElementById("moments").textContent);
  const box = document.getElementById("box");
  for (const data of moments) {
    const svg = document.getElementById(data.figure);
    if (svg) picture(svg, data);
  }

  function picture(svg, data) {
    const cursor = svg.querySelector(".cursor");
    const [, , fullWidth, fullHeight] = svg.viewBox.baseVal ? ["", "", svg.viewBox.baseVal.width, svg.viewBox.baseVal.height] : [];
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    let place = -1, from = null, selection = null;

    const toPicture = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return point.x;
    };
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
    const endAt = (points, time) => {
      let end = 0;
      for (const [t, value] of points) { if (t > time) break; end = value; }
      return end;
    };
    const show = (time, x) => {
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.style.visibility = "visible";
      let state = null;
      for (const each of data.states) { if (each[0] > time) break; state = each; }
      const lines = [`${(time / 1e6).toFixed(3)} s`];
      if (state) lines.push(state[1]);
      for (const broker of data.brokers) {
        const notes = broker.spans.filter((span) => span[0] <= time && time < span[1]).map((span) => span[2]);
        lines.push(`broker ${broker.id}: log ends at ${endAt(broker.ends, time)}${notes.length ? "; " + notes.join(", ") : ""}`);
      }
      box.textContent = lines.join("\n");
      box.hidden = false;
      const matrix = svg.getScreenCTM(), screen = new DOMPoint(x, 30).matrixTransform(matrix);
      const wide = box.offsetWidth;
      box.style.setProperty("left", `${Math.max(4, screen.x + 14 + wide > innerWidth ? screen.x - wide - 14 : screen.x + 14)}px`);
      box.style.setProperty("top", `${Math.max(4, Math.min(screen.y, innerHeight - box.offsetHeight - 4))}px`);
    };
    const hide = () => { cursor.style.visibility = "hidden"; box.hidden = true; };
    const zoom = (begin, end) => {
      const ratio = fullWidth / (end - begin);
      svg.setAttribute("viewBox", ratio > 1 ? `${begin} 0 ${end - begin} ${fullHeight}` : `0 0 ${fullWidth} ${fullHeight}`);
      svg.setAttribute("preserveAspectRatio", ratio > 1 ? "none" : "xMidYMid meet");
      svg.style.setProperty("aspect-ratio", `${fullWidth} / ${fullHeight}`);
      for (const label of svg.querySelectorAll("text, .disc circle")) {
        const at = Number(label.getAttribute("x") || label.getAttribute("cx") || 0);
        label.setAttribute("transform", ratio > 1 ? `translate(${at} 0) scale(${1 / ratio} 1) translate(${-at} 0)` : "");
      }
    };
    const all = () => zoom(0, fullWidth);

    svg.addEventListener("pointermove", (event) => {
      const x = toPicture(event);
      if (from !== null && selection) {
        selection.setAttribute("x", Math.min(from, x));
        selection.setAttribute("width", Math.abs(x - from));
        return;
      }
      if (x < left || x > right) hide(); else show(timeAt(x), x);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointerdown", (event) => {
      const x = toPicture(event);
      if (event.target.closest("a") || x < left || x > right) return;
      from = x;
      selection = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      selection.setAttribute("class", "selection");
      selection.setAttribute("y", 0);
      selection.setAttribute("height", fullHeight);
      svg.append(selection);
    });
    addEventListener("pointerup", (event) => {
      if (from === null) return;
      const x = Math.min(Math.max(toPicture(event), left), right), begin = Math.min(from, x), end = Math.max(from, x);
      selection.remove();
      from = selection = null;
      if (end - begin > 12) zoom(begin, end);
    });
    svg.addEventListener("dblclick", all);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") { all(); hide(); return; }
      if (!step || event.target !== svg) return;
      event.preventDefault();
      place = Math.min(Math.max(place + step, 0), data.states.length - 1);
      const time = Math.max(data.states[place][0], 0);
      show(time, placeAt(time));
    });
    svg.addEventListener("blur", hide);
  }
})();
