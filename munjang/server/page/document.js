// One document, whole: its passages, metadata, similar ones, and deleting it.

import { Gone, Refused, ask, events } from "./api.js";
import { find, make } from "./dom.js";
import { explained } from "./explained.js";
import { facts, inIndex } from "./facts.js";
import { say } from "./language.js";
import { open } from "./sheet.js";

export async function show(hit, look) {
  let whole;
  try {
    whole = await ask("GET", inIndex(`documents?id=${encodeURIComponent(hit.document_id)}`));
  } catch (problem) {
    if (problem instanceof Gone) return;
    if (!(problem instanceof Refused)) throw problem;
    open(
      "document",
      say("document"),
      make("p", { class: "problem" }, problem.status === 404 ? say("document_gone") : problem.message),
    );
    return;
  }
  open(
    "document",
    say("document"),
    make(
      "div",
      { class: "whole" },
      whole.passages.map((passage, place) => shown(passage, place, whole, hit)),
    ),
    explained(hit),
    described(whole),
    actions(whole, look),
  );
}

function shown(passage, place, whole, hit) {
  const total = whole.passages.length;
  const language = ["ko", "en"].includes(whole.metadata.lang) ? whole.metadata.lang : null;
  return make(
    "section",
    { class: passage.id === hit.id && total > 1 ? "passage found" : "passage" },
    total > 1 ? make("p", { class: "hint" }, say("passage_of", { number: place + 1, total })) : null,
    make("p", { dir: "auto", lang: language }, passage.text),
  );
}

function described(whole) {
  const known = [["id", whole.id], ...Object.entries(whole.metadata).filter(([, value]) => value !== null)];
  return make(
    "dl",
    { class: "described" },
    known.map(([name, value]) =>
      make("div", {}, make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, String(value))),
    ),
  );
}

function actions(whole, look) {
  const sheet = find("document");
  const row = make("div", { class: "actions" });
  const similar = make("button", { type: "button", class: "primary" }, say("more_like"));
  similar.addEventListener("click", () => {
    sheet.close();
    look(whole.passages[0].text.slice(0, 400));
  });
  const remove = make("button", { type: "button", class: "danger" }, say("delete"));
  remove.addEventListener("click", () => {
    const sure = make(
      "button",
      { type: "button", class: "danger", onclick: () => deleted(whole.id, row) },
      say("delete_yes"),
    );
    const not = make(
      "button",
      { type: "button", class: "soft", onclick: () => row.replaceChildren(remove, similar) },
      say("cancel"),
    );
    row.replaceChildren(make("span", { role: "alert" }, say("delete_sure")), not, sure);
    not.focus();
  });
  row.append(remove, similar);
  return row;
}

// Ids never go into a path: a browser makes `documents/a/../b` the address of `b`.
async function deleted(id, row) {
  try {
    await ask("DELETE", "documents", { ids: [id], index: facts.index });
  } catch (problem) {
    if (problem instanceof Gone) return;
    if (!(problem instanceof Refused)) throw problem;
    row.prepend(make("p", { class: "problem", role: "alert" }, problem.message));
    return;
  }
  find("document").close();
  events.dispatchEvent(new CustomEvent("wrote", { detail: say("deleted") }));
}
