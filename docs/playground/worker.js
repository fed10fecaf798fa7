// Runs the simulator in a worker, so that the page stays responsive. One request at a time, in order.
// Its first message are the files of Pyodide and of the simulator: nothing is asked of a server, and the page works from disk.
// A page from disk can start no worker that is a module. Pyodide refuses others, and knows them by what this takes away.
self.importScripts = undefined;

const send = (message) => self.postMessage(message);
const unpack = async (packed) => {
  const { body } = await fetch(`data:;base64,${packed}`);
  return new Response(body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};

async function begin(files) {
  const load = async (name) => import(URL.createObjectURL(new Blob([await unpack(files[name])], { type: "text/javascript" })));
  const ask = self.fetch;
  self.fetch = async (resource, options) => {
    const name = String(resource?.url ?? resource).split("/").pop();
    if (!(name in files)) return ask(resource, options);
    return new Response(await unpack(files[name]), { headers: { "content-type": name.endsWith(".wasm") ? "application/wasm" : "" } });
  };
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all([load("pyodide.mjs"), load("pyodide.asm.mjs")]);
  const lockFileContents = new TextDecoder().decode(await unpack(files["pyodide-lock.json"]));
  const python = await loadPyodide({ indexURL: "https://in.memory/", createPyodideModule, lockFileContents });
  for (const name of Object.keys(files).filter((each) => each.endsWith(".whl"))) {
    python.unpackArchive(await unpack(files[name]), "wheel");
  }
  python.unpackArchive(await unpack(files["laststand.zip"]), "zip", { extractDir: "/home/pyodide" });
  python.runPython("import sys; sys.path.insert(0, '/home/pyodide')");
  return python.pyimport("docs.playground.session");
}

let session;

self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "begin") {
      session = begin(data.files);
      send({ kind: "ready", rules: JSON.parse((await session).rules_as_json()) });
    }
    const found = await session;
    if (data.kind === "play") send({ ...data, played: JSON.parse(found.play_as_json(data.plan)) });
    if (data.kind === "explore")
      send({ ...data, explored: JSON.parse(found.explore_as_json(data.seed, data.era, data.switches)) });
  } catch (error) {
    send({ kind: "failed", text: String(error) });
  }
};
