// The page: views as tabs, language and theme, and what happens when the server has news.

import { Gone, Refused, events } from "./api.js";
import * as connection from "./connection.js";
import { find, make } from "./dom.js";
import { choose, facts, learn } from "./facts.js";
import * as adding from "./adding.js";
import * as files from "./files.js";
import * as keys from "./keys.js";
import * as keyboard from "./keyboard.js";
import * as language from "./language.js";
import * as locked from "./locked.js";
import * as map from "./map.js";
import * as search from "./search.js";
import { closeFromOutside } from "./sheet.js";
import * as similarity from "./similarity.js";

const VIEWS = ["search", "similarity", "map"];

function show(view, focusTab = false) {
  for (const each of VIEWS) {
    const tab = find(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === view));
    tab.tabIndex = each === view ? 0 : -1;
    find(each).hidden = each !== view;
  }
  if (focusTab) find(`tab-${view}`).focus();
  document.body.dataset.view = view;
  writeAddress();
  if (view === "map") map.open();
  if (view === "similarity") similarity.open();
}

// #search?q=...: a link to this page opens it where it was
function writeAddress() {
  const query = document.body.dataset.view === "search" ? find("query").value.trim() : "";
  const hash = `#${document.body.dataset.view}${query ? `?q=${encodeURIComponent(query)}` : ""}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

function readAddress() {
  const [view, rest] = location.hash.slice(1).split("?");
  const query = new URLSearchParams(rest ?? "").get("q");
  if (query !== null) find("query").value = query;
  show(VIEWS.includes(view) ? view : "search");
}

function startTabs() {
  VIEWS.forEach((view, place) => {
    find(`tab-${view}`).addEventListener("click", () => show(view));
    find(`tab-${view}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) show(VIEWS[(place + step + VIEWS.length) % VIEWS.length], true);
    });
  });
}

function paintServed() {
  const values = { models: facts.models.join(", "), passages: language.number(facts.passages) };
  find("served").textContent = facts.models.length
    ? language.say(facts.hasIndex ? "served" : "served_plain", values)
    : "";
}

function paintIndexes() {
  const select = find("index");
  select.hidden = facts.indexes.length < 2;
  select.replaceChildren(...facts.indexes.map((name) => make("option", { value: name }, name)));
  select.value = facts.index ?? "";
}

// What the server has, then what each view shows of it; a server that is gone brings us here again.
async function refresh() {
  try {
    await learn();
    await search.search();
    if (!find("similarity").hidden) similarity.open();
    if (!find("map").hidden) map.open();
  } catch (problem) {
    if (problem instanceof Refused) find("status").textContent = language.say("failed", { reason: problem.message });
    else if (!(problem instanceof Gone)) throw problem;
  }
}

language.start();
connection.start();
locked.start();
startTabs();
search.start();
similarity.start();
map.start();
files.start(adding.show);
keys.start();
keyboard.start(() => show("search"));
for (const id of ["document", "adding", "access"]) closeFromOutside(id);
find("index").addEventListener("change", () => choose(find("index").value));
find("language").addEventListener("click", language.switchLanguage);
language.onLanguage(paintServed);
events.addEventListener("learned", paintServed);
events.addEventListener("learned", paintIndexes);
events.addEventListener("searched", writeAddress);
events.addEventListener("back", refresh);
events.addEventListener("wrote", async ({ detail }) => {
  await refresh();
  search.announce(detail);
});
readAddress();
addEventListener("hashchange", () => [readAddress(), search.search()]);
refresh();
if (document.body.dataset.view === "search" && matchMedia("(pointer: fine)").matches) find("query").focus();
