// Documents into the index, with metadata typed as the index has it.

import { Gone, Refused, ask, events } from "./api.js";
import { find, make, tell } from "./dom.js";
import { facts } from "./facts.js";
import { number, say } from "./language.js";
import { open } from "./sheet.js";
import { uploads } from "./files.js";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)$/;
const TRUTH = { true: true, false: false };

// A value as its field has it; a new field's kind is what its first value looks like. What doesn't fit goes as it is:
// the server says what it should be.
export function valueOf(text, kind) {
  const given = text.trim();
  if (kind === "text") return given;
  if (given.toLowerCase() in TRUTH) return TRUTH[given.toLowerCase()];
  // 01012345678 and what has more digits than a number here are no numbers, unless the field says so
  const isWhole = kind === "float" || String(Number(given)) === given;
  return NUMBER.test(given) && isWhole ? Number(given) : given;
}

export function show() {
  const text = make("textarea", { id: "new-text", rows: 5, dir: "auto", required: true });
  const lines = make("input", { type: "checkbox", id: "new-lines" });
  const id = make("input", { id: "new-id", type: "text", maxlength: 512 });
  lines.addEventListener("change", () => (id.disabled = lines.checked)); // many documents have no one id
  const names = make(
    "datalist",
    { id: "known-fields" },
    Object.keys(facts.fields).map((name) => make("option", { value: name })),
  );
  const rows = make("div", { class: "metadata" });
  for (const name of Object.keys(facts.fields).slice(0, 4)) rows.append(row(name));
  if (!rows.children.length) rows.append(row(""));
  const more = make(
    "button",
    { type: "button", class: "quiet", onclick: () => rows.append(row("")) },
    `＋ ${say("metadata_more")}`,
  );
  const problem = make("p", { id: "new-problem", class: "problem", role: "alert", hidden: true });
  const go = make("button", { type: "submit", class: "primary" }, say("adding_go"));
  const form = make(
    "form",
    { novalidate: true, onsubmit: (event) => send(event, { text, lines, id, rows, problem, go }) },
    make("div", { class: "text-field" }, make("label", { for: "new-text" }, say("adding_text")), text),
    make("label", { class: "switch" }, lines, make("span", {}, say("adding_lines"))),
    make("fieldset", {}, make("legend", {}, say("adding_metadata")), rows, more, names),
    make("div", { class: "text-field" }, make("label", { for: "new-id" }, say("adding_id")), id),
    problem,
    make("div", { class: "actions" }, go),
  );
  open("adding", say("adding"), uploads(), form);
  text.focus();
}

function row(name) {
  const field = {
    type: "text",
    class: "name",
    list: "known-fields",
    "aria-label": say("metadata_name"),
    placeholder: say("metadata_name"),
    value: name,
  };
  const value = {
    type: "text",
    class: "value",
    "aria-label": `${say("metadata_value")} ${name}`,
    placeholder: say("metadata_value"),
    dir: "auto",
  };
  return make("div", { class: "pair" }, make("input", field), make("input", value));
}

function documentsOf({ text, lines, id, rows }) {
  const metadata = {};
  for (const pair of rows.children) {
    const [name, value] = [...pair.children].map((input) => input.value.trim());
    if (name && value) metadata[name] = valueOf(value, facts.fields[name]);
  }
  const texts = (lines.checked ? text.value.split("\n") : [text.value]).map((each) => each.trim()).filter(Boolean);
  const named = id.value.trim() && !lines.checked ? { id: id.value.trim() } : {};
  return texts.map((each) => ({ text: each, metadata, ...named }));
}

async function send(event, parts) {
  event.preventDefault();
  const documents = documentsOf(parts);
  if (!documents.length) {
    tell(parts.problem, say("adding_nothing"));
    parts.text.focus();
    return;
  }
  tell(parts.problem, "");
  parts.go.disabled = true;
  parts.go.textContent = say("adding_wait");
  try {
    const { ids } = await ask("POST", "documents", { documents, index: facts.index });
    find("adding").close();
    const detail = say(ids.length === 1 ? "added_one" : "added_many", { number: number(ids.length) });
    events.dispatchEvent(new CustomEvent("wrote", { detail }));
  } catch (problem) {
    if (problem instanceof Refused) tell(parts.problem, say("failed", { reason: problem.message }));
    else if (problem instanceof Gone) tell(parts.problem, say("trying"));
    else throw problem;
  } finally {
    parts.go.disabled = false;
    parts.go.textContent = say("adding_go");
  }
}
