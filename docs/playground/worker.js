// Runs the simulator in a worker, so that the page stays responsive. One request at a time, in order.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const tell = (message) => self.postMessage(message);

async function begin() {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", self.location.href).href });
  const files = await (await fetch("./archive.json")).json();
  for (const wheel of files.wheels) await python.loadPackage(new URL(wheel, self.location.href).href);
  const archive = await (await fetch(files.archive)).arrayBuffer();
  python.unpackArchive(archive, "zip", { extractDir: "/home/pyodide" });
  python.runPython("import sys; sys.path.insert(0, '/home/pyodide')");
  return python.pyimport("docs.playground.session");
}

const session = begin();
session.then(
  (found) => tell({ kind: "ready", rules: JSON.parse(found.rules_as_json()) }),
  (error) => tell({ kind: "failed", text: String(error) }),
);

self.onmessage = async ({ data }) => {
  try {
    const found = await session;
    if (data.kind === "play") tell({ ...data, played: JSON.parse(found.play_as_json(data.plan)) });
    if (data.kind === "explore")
      tell({ ...data, explored: JSON.parse(found.explore_as_json(data.seed, data.era, data.switches)) });
  } catch (error) {
    tell({ kind: "failed", text: String(error) });
  }
};
