// The page: a plan, its pictures, and buttons that append lines to the plan. The worker plays the whole plan again after
// each change: it is deterministic, and takes milliseconds.

const find = (id) => document.getElementById(id);
const ACTIONS = [
  ["Produce 3, acks=all", () => `produce ${partition()} acks=all records=3`],
  ["Produce 1, acks=1", () => `produce ${partition()} acks=1 records=1`],
  ["Wait 0.1 s", () => "wait 100"],
  ["Wait 1 s", () => "wait 1000"],
  ["Cut off", () => `isolate ${broker()}`],
  ["Power loss", () => `power-loss ${broker()} keep=none kept=0 truncation=kept`],
  ["Kill", () => `kill ${broker()}`],
  ["Stop", () => `stop ${broker()}`],
  ["Start", () => `start ${broker()}`],
  ["Empty disk", () => `replace-disk ${broker()}`],
  ["Mend all links", () => "heal"],
  ["Elect preferred", () => `elect_leaders: {type: preferred, partition: ${partition()}}`],
  ["Elect uncleanly", () => `elect_leaders: {type: unclean, partition: ${partition()}}`],
];
const SEARCHED_MAX = 2000;

const { FILES, WORKER, STORIES } = self; // of simulator.js
const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
const state = { rules: {}, frames: [], chosen: 0, isSearching: false, isReady: false };

const partition = () => Object.keys(state.frames[0]?.partitions ?? { "orders-0": null })[0];
const broker = () => find("broker").value;
const node = (tag, text, attributes = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const options = (id, values, chosen) =>
  find(id).replaceChildren(...values.map((value) => {
    const [name, text] = Array.isArray(value) ? value : [value, value];
    const option = node("option", text, { value: name });
    option.selected = name === chosen;
    return option;
  }));

// --- The plan ---------------------------------------------------------------------------------------------------------

const isScenario = () => /^steps:/m.test(find("plan").value);

function play() {
  const plan = find("plan").value;
  history.replaceState(null, "", `#plan=${encodeURIComponent(plan)}`);
  const [file, command] = isScenario() ? ["scenario.yaml", "run"] : ["plan.txt", "replay"];
  find("command").textContent = `cat > ${file} <<'END'\n${plan.trimEnd()}\nEND\nlaststand ${command} ${file} --driver process`;
  for (const button of document.querySelectorAll("#actions button, #undo")) button.disabled = isScenario();
  if (state.isReady) worker.postMessage({ kind: "play", plan });
}

function setPlan(text) {
  find("plan").value = text;
  state.chosen = Infinity;
  play();
}

function append(line) {
  setPlan(`${find("plan").value.trimEnd()}\n${line}\n`);
}

function clusterLine() {
  const rule = find("rule").value;
  const changed = rule ? ` ${rule}=${find("value").value}` : "";
  return `cluster brokers=3 era=${find("era").value}${changed}`;
}

function changeScenario() {
  const rule = find("rule").value;
  const changed = rule ? `switches: {${rule}: '${find("value").value}'}\n` : "";
  const kept = find("plan").value.replace(/^(era|switches): .*\n/gm, "");
  setPlan(`era: ${find("era").value}\n${changed}${kept}`);
}

function changeCluster() {
  if (isScenario()) return changeScenario();
  const lines = find("plan").value.split("\n");
  const place = lines.findIndex((line) => line.startsWith("cluster "));
  const kept = lines[place]?.split(/\s+/).slice(1).filter((word) => {
    const name = word.split("=")[0];
    return !["brokers", "era"].includes(name) && !(name in (state.rules[find("era").value] ?? {}));
  });
  const brokers = lines[place]?.match(/brokers=(\d+)/)?.[0] ?? "brokers=3";
  lines[place] = [clusterLine().replace("brokers=3", brokers), ...(kept ?? [])].join(" ");
  setPlan(lines.join("\n"));
}

function settingsOfPlan() {
  const words = find("plan").value.split("\n").find((line) => line.startsWith("cluster "))?.split(/\s+/) ?? [];
  return Object.fromEntries(words.slice(1).map((word) => word.split("=")));
}

function settingsOfScenario() {
  const era = find("plan").value.match(/^era: (\S+)/m)?.[1];
  const [, rule, value] = find("plan").value.match(/^switches: \{(\w+): '?([\w.]+)'?\}/m) ?? [];
  return rule ? { era, [rule]: value } : { era };
}

function readCluster() {
  const settings = isScenario() ? settingsOfScenario() : settingsOfPlan();
  const era = settings.era in state.rules ? settings.era : "kip-966";
  const rule = Object.keys(settings).find((name) => name in state.rules[era]);
  options("era", Object.keys(state.rules), era);
  options("rule", [["", "none"], ...Object.keys(state.rules[era])], rule ?? "");
  readValues(rule && settings[rule]);
}

function readValues(chosen) {
  const rule = find("rule").value;
  const usual = state.rules[find("era").value][rule];
  const others = new Set(Object.values(state.rules).map((rules) => rules[rule]).filter((value) => value !== undefined));
  if (usual === "on") others.add("off");
  if (usual === "off") others.add("on");
  others.delete(usual);
  options("value", rule ? [...others] : [["", "—"]], chosen ?? "");
  find("value").disabled = !rule;
}

// --- The pictures -----------------------------------------------------------------------------------------------------

function draw(played) {
  find("problem").textContent = played.problem ?? "";
  if (played.problem) return;
  state.frames = played.frames;
  state.chosen = Math.min(state.chosen, played.frames.length - 1);
  const isLoss = played.verdict.startsWith("violation");
  find("verdict").textContent = `${isLoss ? "✕" : played.verdict.startsWith("valid") ? "✓" : "?"} ${played.verdict}`;
  find("verdict").className = isLoss ? "loss" : "";
  find("verdict").dataset.digest = played.digest;
  const brokers = Object.keys(played.frames[0].nodes).filter((id) => id !== "100");
  options("broker", brokers, broker());
  const table = find("lanes");
  table.replaceChildren(table.caption, head(), ...rows(brokers));
  choose(state.chosen);
}

function head() {
  const row = node("tr");
  row.append(node("td"));
  state.frames.forEach((frame, number) => {
    const cell = node("th", undefined, { scope: "col", "data-frame": number });
    const button = node("button", frame.text, { title: frame.text });
    if (!frame.took_effect) button.className = "skipped";
    button.onclick = () => choose(number);
    cell.append(button);
    row.append(cell);
  });
  const made = node("thead");
  made.append(row);
  return made;
}

function rows(brokers) {
  const end = Math.max(1, ...state.frames.flatMap((frame) =>
    Object.values(frame.partitions).flatMap((each) => Object.values(each.replicas).map((log) => log.log_end_offset))));
  return [
    lane("leader", (frame, picture) => {
      const text = picture.leader === null ? "nobody" : `broker ${picture.leader}`;
      const elr = picture.elr.length ? `, ELR ${picture.elr}` : "";
      return cellOf(`${text}, epoch ${picture.leader_epoch}; ISR ${picture.isr.join(" ") || "none"}${elr}`,
        picture.leader === null ? "none" : "leader");
    }),
    ...brokers.map((id) => lane(`broker ${id}`, (frame, picture) => brokerCell(id, frame, picture, end))),
    lane("clients", (frame) => cellOf(frame.missing ? `${frame.missing} acknowledged records missing` : `${frame.acks} acks=all`,
      frame.missing ? "lost" : "")),
    lane("checks", (frame) => cellOf([...new Set(frame.alarms.map((alarm) => alarm.replace("!", "").split(":")[0]))].join(" "),
      frame.alarms.some((alarm) => alarm.startsWith("!")) ? "lost" : "")),
  ];
}

function lane(name, cell) {
  const row = node("tr");
  row.append(node("th", name, { scope: "row" }));
  state.frames.forEach((frame, number) => {
    const made = cell(frame, Object.values(frame.partitions)[0]);
    made.dataset.frame = number;
    made.onclick = () => choose(number);
    row.append(made);
  });
  return row;
}

const cellOf = (text, kind) => node("td", text, kind ? { class: kind } : {});

function brokerCell(id, frame, picture, end) {
  const number = Number(id);
  const log = picture.replicas[id];
  const isUp = ["running", "fenced"].includes(frame.nodes[id]);
  const role = picture.leader === number ? "leader" : picture.isr.includes(number) ? "in ISR"
    : picture.elr.includes(number) ? "in ELR" : "out";
  const words = [isUp ? role : `${frame.nodes[id]}, ${role}`];
  if (frame.nodes[id] === "fenced") words.push("fenced");
  if (log?.role === "leader" && picture.leader !== number) words.push(`thinks it leads epoch ${log.leader_epoch}`);
  const cell = cellOf(words.join(", "), `${role.replace("in ", "").toLowerCase()}${isUp ? "" : " down"}`);
  if (frame.broken.some((link) => link.startsWith(`${id}->`) || link.endsWith(`->${id}`))) cell.classList.add("cut");
  if (!log) return cell;
  const bar = node("div", undefined, { class: "bar", "aria-hidden": "true" });
  for (const [epoch, first, last] of log.spans) {
    bar.append(node("i", "", {
      class: `epoch${epoch % 6}`,
      style: `left:${(100 * first) / end}%;width:${(100 * (last - first + 1)) / end}%`,
    }));
  }
  bar.append(node("b", "", { class: "promise", style: `left:${(100 * picture.promised_end_offset) / end}%` }));
  const marks = log.high_watermark < 0 ? "" : `, high watermark ${log.high_watermark}`;
  cell.append(bar, node("small", `offsets ${log.log_start_offset} to ${log.log_end_offset}${marks}`));
  return cell;
}

function choose(number) {
  if (!state.frames.length) return;
  state.chosen = Math.max(0, Math.min(number, state.frames.length - 1));
  for (const cell of document.querySelectorAll("[data-frame]")) {
    cell.classList.toggle("chosen", Number(cell.dataset.frame) === state.chosen);
  }
  const frame = state.frames[state.chosen];
  find("moment").textContent = `${frame.now_ms} ms: ${frame.text}${frame.took_effect ? "" : " (not possible then)"}`;
  find("log").replaceChildren(
    ...frame.alarms.map((alarm) => node("p", alarm.replace(/^!/, ""), { class: alarm.startsWith("!") ? "loss" : "alarm" })),
    ...frame.events.map((event) => node("p", event)),
  );
  document.querySelector(`thead [data-frame="${state.chosen}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// --- The search -------------------------------------------------------------------------------------------------------

function search() {
  state.isSearching = !state.isSearching;
  find("search").textContent = state.isSearching ? "Stop" : "Search for a loss";
  if (state.isSearching) explore(1);
}

function explore(seed) {
  const rule = find("rule").value;
  worker.postMessage({
    kind: "explore", seed, era: find("era").value, switches: rule ? `${rule}=${find("value").value}` : "",
  });
}

function explored(found) {
  if (!state.isSearching) return;
  find("searched").textContent = found.finding ? `seed ${found.seed}: ${found.finding}` : `${found.seed} schedules, nothing yet`;
  if (found.finding || found.seed >= SEARCHED_MAX) {
    search();
    if (found.plan) setPlan(found.plan);
  } else {
    explore(found.seed + 1);
  }
}

// --- The page ---------------------------------------------------------------------------------------------------------

worker.onerror = (event) => { find("verdict").textContent = `the simulator failed: ${event.message ?? "the browser did not start it"}`; };
worker.onmessage = ({ data }) => {
  if (data.kind === "failed") find("verdict").textContent = `the simulator failed: ${data.text}`;
  if (data.kind === "play" && data.plan === find("plan").value) draw(data.played);
  if (data.kind === "explore") explored(data.explored);
  if (data.kind === "ready") {
    state.rules = data.rules;
    state.isReady = true;
    readCluster();
    play();
  }
};

for (const [text, line] of ACTIONS) {
  const button = node("button", text);
  button.onclick = () => append(line());
  find("actions").append(button);
}
find("era").onchange = () => { find("rule").value = ""; readValues(); changeCluster(); readCluster(); };
find("rule").onchange = () => { readValues(); changeCluster(); };
find("value").onchange = changeCluster;
find("search").onclick = search;
find("plan").oninput = () => { state.chosen = Infinity; play(); readCluster(); };
find("undo").onclick = () => {
  const lines = find("plan").value.trimEnd().split("\n");
  if (lines.length > 2) setPlan(`${lines.slice(0, -1).join("\n")}\n`);
};
find("link").onclick = () => navigator.clipboard.writeText(location.href);
document.onkeydown = (event) => {
  if (["TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
  if (event.key === "ArrowLeft") choose(state.chosen - 1);
  if (event.key === "ArrowRight") choose(state.chosen + 1);
};

const groups = { Plans: (each) => !/^steps:/m.test(each.plan), Scenarios: (each) => /^steps:/m.test(each.plan) };
find("preset").replaceChildren(...Object.entries(groups).map(([label, isOfGroup]) => {
  const group = node("optgroup", undefined, { label });
  STORIES.forEach((each, number) => { if (isOfGroup(each)) group.append(node("option", each.title, { value: String(number) })); });
  return group;
}));
find("preset").onchange = () => { setPlan(STORIES[Number(find("preset").value)].plan); readCluster(); };
const fragment = decodeURIComponent(location.hash.match(/^#plan=(.*)$/)?.[1] ?? "");
setPlan(fragment || STORIES[0].plan);
worker.postMessage({ kind: "begin", files: FILES });
