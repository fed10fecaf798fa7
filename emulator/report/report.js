"use strict";
// Adds hover, zoom and a button that copies the plan. Without it nothing else is missing.
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

  const box = document.getElementById("box");
  for (const data of JSON.parse(document.getElementById("moments").textContent)) {
    const svg = document.getElementById(data.figure);
    if (svg) attachPicture(svg, data, box, {});
  }

  const copy = document.getElementById("copy-plan");
  copy?.addEventListener("click", async () => {
    const plan = document.getElementById("plan-text");
    try {
      await navigator.clipboard.writeText(plan.textContent);
      copy.textContent = "copied";
    } catch {
      plan.closest("details").open = true;
      getSelection().selectAllChildren(plan);
      copy.textContent = "selected: copy it with the keyboard";
    }
  });
})();
