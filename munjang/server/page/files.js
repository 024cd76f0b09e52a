// Files into the index, as they are: chosen, or dropped anywhere on the page; each is read by the server.

import { Gone, Refused, ask, events } from "./api.js";
import { find, make } from "./dom.js";
import { facts, inIndex } from "./facts.js";
import { number, say } from "./language.js";

const KINDS = ".pdf,.docx,.pptx,.xlsx,.hwpx,.html,.htm,.epub,.eml,.msg,.txt,.md";

export function uploads() {
  const input = make("input", { type: "file", id: "new-files", multiple: true, accept: KINDS });
  const list = make("ul", { id: "file-states", class: "file-states", role: "status" });
  input.addEventListener("change", () => send([...input.files], list));
  return make(
    "div",
    { class: "text-field" },
    make("label", { for: "new-files" }, say("files")),
    input,
    make("p", { class: "hint" }, say("files_hint")),
    list,
  );
}

export function start(openSheet) {
  document.addEventListener("dragover", (event) => {
    if (facts.hasIndex && event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const files = [...event.dataTransfer.files];
    if (!facts.hasIndex || !files.length) return;
    event.preventDefault();
    openSheet();
    send(files, find("file-states"));
  });
}

async function send(files, list) {
  let added = 0;
  for (const file of files) {
    const state = make("span", {}, say("file_reading"));
    list.append(make("li", {}, make("bdi", {}, file.name), " ", state));
    try {
      const { characters } = await ask("POST", inIndex(`files?name=${encodeURIComponent(file.name)}`), file);
      state.textContent = say("file_added", { number: number(characters) });
      added += 1;
    } catch (problem) {
      if (!(problem instanceof Refused || problem instanceof Gone)) throw problem;
      state.className = "wrong";
      state.textContent = problem instanceof Gone ? say("trying") : problem.message;
    }
  }
  const detail = say(added === 1 ? "added_one" : "added_many", { number: number(added) });
  if (added) events.dispatchEvent(new CustomEvent("wrote", { detail }));
}
