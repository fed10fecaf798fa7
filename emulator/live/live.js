"use strict";
// Shows what the server tells, has done what is clicked, and says when nothing new comes.
(() => {
  const STALE_MS = 6000, AGAIN_MS = 1500;
  const token = new URLSearchParams(location.search).get("token");
  const state = document.getElementById("state"), said = document.getElementById("said");
  const stages = [...document.querySelectorAll(".stage")];
  const box = document.getElementById("box"), kept = new Map();
  let heardAt = 0, isOver = false;

  const mark = (kind, words) => {
    state.className = kind;
    if (state.textContent !== words) state.textContent = words;
    document.body.classList.toggle("stale", kind === "stale");
  };
  const put = (place, html) => {
    if (place.shown === html) return false;
    const step = document.activeElement?.dataset?.step, details = place.querySelector("details");
    const wasOpen = details ? details.open : null;
    place.innerHTML = html;
    place.shown = html;
    if (wasOpen && place.querySelector("details")) place.querySelector("details").open = true;
    if (step && document.activeElement === document.body) {
      [...place.querySelectorAll("[data-step]")].find((each) => each.dataset.step === step)?.focus();
    }
    return true;
  };
  const draw = (place, html, moments) => {
    // Who drags over a picture keeps it until the end of the drag; the next look is drawn.
    if (moments.some((data) => kept.get(data.figure)?.isBusy)) return;
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    if (!put(place, html)) return;
    box.hidden = true;
    for (const data of moments) {
      if (!kept.has(data.figure)) kept.set(data.figure, {});
      attachPicture(document.getElementById(data.figure), data, box, kept.get(data.figure));
    }
    if (focused) document.getElementById(focused)?.focus();
  };
  const report = (words, kind) => {
    said.className = kind;
    said.textContent = words;
  };

  const listen = () => {
    const source = new EventSource(`stream?token=${encodeURIComponent(token)}`);
    source.addEventListener("look", (event) => {
      heardAt = Date.now();
      const look = JSON.parse(event.data);
      for (const [place, each] of look.stages.entries()) {
        put(stages[place].querySelector(".panel"), each.panel);
        draw(stages[place].querySelector(".drawing"), each.drawing, each.moments);
      }
      mark("live", "live");
    });
    source.addEventListener("alive", () => { heardAt = Date.now(); });
    source.addEventListener("over", (event) => {
      isOver = true;
      source.close();
      mark("over", JSON.parse(event.data));
      for (const button of document.querySelectorAll("[data-step]")) button.disabled = true;
    });
    source.addEventListener("error", () => {
      if (isOver || source.readyState !== EventSource.CLOSED) return;
      source.close();
      setTimeout(listen, AGAIN_MS);
    });
  };
  setInterval(() => {
    const silent = Date.now() - heardAt;
    if (!isOver && silent > STALE_MS) mark("stale", heardAt ? `stale: no news for ${Math.round(silent / 1000)} s; connecting again` : "no answer; connecting again");
  }, 500);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-step]");
    if (!button) return;
    const stage = stages.indexOf(button.closest(".stage")), step = button.dataset.step;
    button.disabled = true;
    report(`${step} …`, "");
    try {
      const answer = await fetch("actions", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Laststand-Token": token },
        body: JSON.stringify({ stage, step }),
      });
      const outcome = await answer.json();
      report(answer.ok ? `${step} → ${outcome.seen}` : `${step}: ${outcome.reason}`, answer.ok ? "" : "refused");
    } catch {
      report(`${step}: no answer`, "refused");
    }
    button.disabled = false;
  });
  listen();
})();
