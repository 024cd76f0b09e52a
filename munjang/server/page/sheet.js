// Dialogs: a heading, a way out, and the browser's own handling of focus and Esc.

import { find, make } from "./dom.js";
import { say } from "./language.js";

export function open(id, title, ...content) {
  const sheet = find(id);
  const close = make(
    "button",
    { type: "button", class: "quiet close", "aria-label": say("close"), onclick: () => sheet.close() },
    "✕",
  );
  sheet.replaceChildren(make("header", {}, make("h2", { id: `${id}-title` }, title), close), ...content);
  if (!sheet.open) sheet.showModal();
  return sheet;
}

// A click beside it closes it, but not one that began inside, as marking a text with the mouse does.
export function closeFromOutside(id) {
  const sheet = find(id);
  let began = null;
  sheet.addEventListener("pointerdown", (event) => (began = event.target));
  sheet.addEventListener("click", (event) => {
    if (event.target === sheet && began === sheet) sheet.close();
  });
}
