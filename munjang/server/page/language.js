// Which language the page speaks: the one chosen here before, else the browser's.

import { WORDS } from "./words.js";
import { recall, remember } from "./keep.js";

const known = recall("language");
let language = known in WORDS ? known : navigator.language.startsWith("ko") ? "ko" : "en";
const listeners = [];

export function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export const number = (value) => new Intl.NumberFormat(language).format(value);
export const count = (value) => say(value === 1 ? "hits_one" : "hits_many", { number: number(value) });
export const onLanguage = (action) => listeners.push(action);

// Elements name what they say: data-say for their text, data-say-label and data-say-placeholder for attributes.
export function speak(root = document) {
  for (const element of root.querySelectorAll("[data-say]")) element.textContent = say(element.dataset.say);
  for (const element of root.querySelectorAll("[data-say-label]")) {
    const label = say(element.dataset.sayLabel);
    element.setAttribute("aria-label", label);
    if (element.matches("button")) element.title = label;
  }
  for (const element of root.querySelectorAll("[data-say-placeholder]")) {
    element.placeholder = say(element.dataset.sayPlaceholder);
  }
}

export function start() {
  document.documentElement.lang = language;
  speak();
}

document.addEventListener("themechange", () => speak()); // theme.js has named another label

export function switchLanguage() {
  language = language === "ko" ? "en" : "ko";
  remember("language", language);
  start();
  for (const action of listeners) action();
}
