// The API key, asked for once when the server wants one.

import { events } from "./api.js";
import { find, make } from "./dom.js";
import { say } from "./language.js";

export function start() {
  find("locked").addEventListener("cancel", (event) => event.preventDefault()); // nothing works without it
  events.addEventListener("locked", ({ detail }) => show(detail.wasWrong, detail.unlock));
}

function show(wasWrong, unlock) {
  const sheet = find("locked");
  const input = make("input", {
    id: "key",
    type: "password",
    required: true,
    autocomplete: "off",
    "aria-describedby": "key-problem",
  });
  const form = make(
    "form",
    {
      method: "dialog",
      onsubmit: (event) => {
        event.preventDefault();
        sheet.close();
        unlock(input.value.trim());
      },
    },
    make("p", { class: "hint" }, say("locked_why")),
    make("div", { class: "text-field" }, make("label", { for: "key" }, say("locked_key")), input),
    make(
      "p",
      { id: "key-problem", class: "problem", role: "alert", hidden: !wasWrong },
      wasWrong ? say("locked_wrong") : "",
    ),
    make("div", { class: "actions" }, make("button", { type: "submit", class: "primary" }, say("locked_go"))),
  );
  sheet.replaceChildren(make("header", {}, make("h2", { id: "locked-title" }, say("locked"))), form);
  sheet.showModal();
  input.focus();
}
