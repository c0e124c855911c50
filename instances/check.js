// The page that checks a certificate: it hands files to a worker, and shows its verdict.
"use strict";

const VERDICTS = ["VALID", "INVALID: a claim is false", "UNREADABLE: nothing is checked"];
const place = (id) => document.getElementById(id);
let worker = null;

function show(text, status = "", lines = []) {
  place("verdict").textContent = text;
  place("verdict").dataset.status = status;
  place("lines").textContent = lines.join("\n");
}

function finish(text, status, lines) {
  place("stop").hidden = true;
  show(text, status, lines);
}

// A stopped or broken check leaves nothing behind: the next one begins in a new worker.
function stop(text) {
  if (worker) worker.terminate();
  worker = null;
  finish(text);
}

function start() {
  worker = new Worker("check-worker.js", { type: "module" });
  worker.onmessage = ({ data }) => {
    if ("progress" in data) return show(data.progress);
    if ("failure" in data) return stop(data.failure);
    finish(`${data.name}: ${VERDICTS[data.status]}`, data.status, data.lines);
  };
  worker.onerror = () => stop("the checker cannot be loaded: see instances/README.md, In the browser");
}

function check(name, bytes) {
  if (!place("stop").hidden) stop("stopped"); // a check is running
  if (!worker) start();
  place("stop").hidden = false;
  show(`${name}: loading the checker`);
  worker.postMessage({ name, bytes });
}

async function checkFile(file) {
  if (!file) return;
  show(`${file.name}: reading`);
  check(file.name, await file.arrayBuffer());
}

// Only files beside this page: no other address, no folder above.
async function checkLinked(path) {
  if (!/^[\w-]+(\/[\w-]+)*(\.[\w-]+)+$/.test(path)) return show(`no certificate of this library: ${path}`);
  const reply = await fetch(path);
  if (!reply.ok) return show(`${path}: ${reply.status} ${reply.statusText}`);
  check(path.split("/").pop(), await reply.arrayBuffer());
}

place("file").onchange = ({ target }) => checkFile(target.files[0]);
place("stop").onclick = () => stop("stopped: nothing is known of the file");
const drop = place("drop");
drop.ondragover = (event) => { event.preventDefault(); drop.classList.add("over"); };
drop.ondragleave = () => drop.classList.remove("over");
drop.ondrop = (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  checkFile(event.dataTransfer.files[0]);
};
const linked = new URLSearchParams(location.search).get("file");
if (linked) checkLinked(linked);
