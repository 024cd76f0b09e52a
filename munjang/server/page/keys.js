// Whose key this is and what it has used; for who may manage keys, all of them: add one, revoke one.

import { Gone, Refused, ask, changeKey } from "./api.js";
import { find, make, tell } from "./dom.js";
import { facts } from "./facts.js";
import { number, say } from "./language.js";
import { open } from "./sheet.js";

export function start() {
  find("keys").addEventListener("click", show);
}

async function show() {
  try {
    const own = await ask("GET", "usage");
    const all = own.scopes.includes("admin") ? await ask("GET", "keys") : null;
    open("access", say("access"), ...mine(own), all ? managed(all) : null);
  } catch (problem) {
    if (problem instanceof Refused) open("access", say("access"), make("p", { class: "problem" }, problem.message));
    else if (!(problem instanceof Gone)) throw problem;
  }
}

function mine(own) {
  const facts = [
    [say("access_name"), own.name],
    [say("access_scopes"), own.scopes.join(", ")],
    [say("access_used"), say("access_amount", { requests: number(own.requests), tokens: number(own.tokens) })],
  ];
  const lines = facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const leave = make("button", { type: "button", class: "soft", onclick: other }, say("access_other"));
  return [make("dl", { class: "described" }, lines), make("div", { class: "actions" }, leave)];
}

function other() {
  find("access").close();
  changeKey("");
}

function managed({ keys, can_change: canChange }) {
  const head = ["access_name", "access_scopes", "access_sees", "access_used", ""].map((word) => word && say(word));
  const body = keys.map((key) => {
    const only = Object.entries(key.only).map(([name, value]) => `${name} = ${value}`);
    const used = say("access_amount", { requests: number(key.requests), tokens: number(key.tokens) });
    const revoke = make("button", { type: "button", class: "danger", onclick: () => revoked(key.name) }, say("revoke"));
    const sees = [...key.indexes, ...only].join(", ") || say("access_all");
    return row("td", [key.name, key.scopes.join(", "), sees, used, canChange ? revoke : ""]);
  });
  return make(
    "div",
    { id: "all-keys", class: "all-keys" },
    make("h3", {}, say("access_keys")),
    make("table", {}, make("thead", {}, row("th", head)), make("tbody", {}, body)),
    make("p", { id: "new-secret", class: "secret", role: "status", hidden: true }),
    make("p", { id: "key-wrong", class: "problem", role: "alert", hidden: true }),
    canChange ? adding() : make("p", { class: "hint" }, say("access_fixed")),
  );
}

const row = (kind, cells) => make("tr", {}, cells.map((cell) => make(kind, {}, cell)));

function adding() {
  const name = make("input", { id: "key-name", type: "text", required: true, maxlength: 64, autocomplete: "off" });
  const only = make("input", { id: "key-only", type: "text", placeholder: "tenant=alice", autocomplete: "off" });
  const boxes = ["read", "write", "admin"].map((scope) => {
    const box = make("input", { type: "checkbox", value: scope, checked: scope === "read" });
    return make("label", { class: "switch" }, box, make("span", {}, scope));
  });
  const indexes = facts.indexes.map((index) => make("option", { value: index }, index));
  const index = make("select", { id: "key-index" }, make("option", { value: "" }, say("access_all")), indexes);
  const field = (word, input) =>
    make("div", { class: "text-field" }, make("label", { for: input.id }, say(word)), input);
  const submit = (event) => {
    event.preventDefault();
    const scopes = boxes.map((label) => label.firstChild).filter((box) => box.checked);
    const pair = only.value.trim().split("=");
    send({
      name: name.value.trim(),
      scopes: scopes.map((box) => box.value),
      indexes: index.value ? [index.value] : [],
      only: pair.length > 1 ? { [pair[0].trim()]: pair.slice(1).join("=").trim() } : {},
    });
  };
  return make(
    "form",
    { id: "new-key", onsubmit: submit },
    field("access_name", name),
    make("div", { class: "scopes", role: "group" }, boxes),
    field("access_index", index),
    field("access_only", only),
    make("div", { class: "actions" }, make("button", { type: "submit", class: "primary" }, say("access_add"))),
  );
}

async function send(body) {
  let secret;
  try {
    secret = (await ask("POST", "keys", body)).key;
  } catch (problem) {
    if (problem instanceof Refused) return tell(find("key-wrong"), problem.message);
    if (problem instanceof Gone) return;
    throw problem;
  }
  await show();
  const line = find("new-secret");
  line.replaceChildren(say("access_secret", { name: body.name }), " ", make("code", {}, secret));
  line.hidden = false;
}

async function revoked(name) {
  try {
    await ask("DELETE", `keys/${encodeURIComponent(name)}`);
  } catch (problem) {
    if (problem instanceof Refused) return tell(find("key-wrong"), problem.message);
    if (problem instanceof Gone) return;
    throw problem;
  }
  await show();
}
