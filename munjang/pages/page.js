// The language of the page: the one chosen before, else the browser's. Elements name what they say, as on the search page.

"use strict";
const WORDS = JSON.parse(document.getElementById("words").textContent); // key: [English, Korean]
const LANGUAGES = ["en", "ko"];
let language = navigator.language.startsWith("ko") ? "ko" : "en";
try {
  const chosen = localStorage.getItem("munjang-language");
  if (LANGUAGES.includes(chosen)) language = chosen;
} catch {
  // forgets the choice
}

function say(key, values = {}) {
  const phrase = WORDS[key][LANGUAGES.indexOf(language)];
  return phrase.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// data-say for the text of an element, data-say-label and others for its attributes; values stand in data-NAME
function speak() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) {
    element.textContent = say(element.dataset.say, element.dataset);
  }
  for (const element of document.querySelectorAll("[data-say-label]")) {
    const label = say(element.dataset.sayLabel, element.dataset);
    element.setAttribute("aria-label", label);
    if (element.matches("button")) element.title = label;
  }
  for (const element of document.querySelectorAll("[data-say-placeholder]")) {
    element.placeholder = say(element.dataset.sayPlaceholder, element.dataset);
  }
  document.dispatchEvent(new Event("spoken"));
}

document.addEventListener("themechange", speak);
document.getElementById("language").addEventListener("click", () => {
  language = language === "ko" ? "en" : "ko";
  try {
    localStorage.setItem("munjang-language", language);
  } catch {
    // private windows may refuse
  }
  speak();
});
speak();
