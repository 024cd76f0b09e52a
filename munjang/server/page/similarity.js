// How close texts are: two of them as a number, many as a table of colours.

import { Gone, Refused, ask } from "./api.js";
import { find, later, make, tell } from "./dom.js";
import { facts } from "./facts.js";
import { onLanguage, say } from "./language.js";

const MOST = 24; // lines that are compared: a table that can still be read
const DELAY = 250;
const state = { two: null, many: null, texts: [], problem: "" };
const newest = {}; // request of each kind; older ones are cut off

export function start() {
  example();
  find("first").addEventListener("input", later(DELAY, compareTwo));
  find("second").addEventListener("input", later(DELAY, compareTwo));
  find("many").addEventListener("input", later(DELAY, compareMany));
  find("heat-scroll").addEventListener("pointerover", (event) => describe(event.target.closest("td")));
  onLanguage(() => {
    if (!find("many").dataset.touched) example();
    paint();
  });
  find("many").addEventListener("input", () => (find("many").dataset.touched = "yes"));
  paint();
}

function example() {
  for (const name of ["first", "second", "many"]) find(name).value = say(`example_${name}`);
}

export function open() {
  if (!facts.hasEmbedder) {
    tell(find("similarity-problem"), facts.models.length ? say("no_embedder") : "");
    return;
  }
  compareTwo();
  compareMany();
}

async function compared(kind, texts) {
  newest[kind]?.abort();
  const mine = (newest[kind] = new AbortController());
  try {
    const answer = await ask("POST", "similarities", { texts }, mine.signal);
    state.problem = "";
    return mine === newest[kind] ? answer : null;
  } catch (problem) {
    if (problem.name === "AbortError" || problem instanceof Gone) return null;
    if (!(problem instanceof Refused)) throw problem;
    state.problem = say("failed", { reason: problem.message });
    return mine === newest[kind] ? undefined : null;
  }
}

async function compareTwo() {
  const texts = [find("first").value, find("second").value].map((text) => text.trim());
  const answer = texts.every(Boolean) ? await compared("two", texts) : undefined;
  if (answer === null) return;
  state.two = answer ? { score: answer.scores[0][1], isCosine: answer.similarity === "cosine" } : null;
  paint();
}

async function compareMany() {
  const texts = lines().slice(0, MOST);
  const answer = texts.length > 1 ? await compared("many", texts) : undefined;
  if (answer === null) return;
  state.many = answer?.scores ?? null;
  state.texts = texts;
  paint();
}

const lines = () =>
  find("many")
    .value.split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function paint() {
  document.querySelector("label[for=many]").textContent = say("many_label", { most: MOST });
  tell(find("similarity-problem"), state.problem);
  const { two } = state;
  find("closeness").textContent = two ? two.score.toFixed(3) : "–";
  find("closeness-bar").style.setProperty("width", `${two?.isCosine ? Math.max(0, two.score) * 100 : 0}%`);
  find("closeness-words").textContent = two?.isCosine ? say("scale_cosine") : "";
  paintHeat();
}

function paintHeat() {
  const { many, texts } = state;
  const number = lines().length;
  find("heat-pair").textContent = !many
    ? say("heat_few")
    : number > MOST
      ? say("heat_many", { number, most: MOST })
      : say("heat_hint");
  if (!many) {
    find("heat-scroll").replaceChildren();
    return;
  }
  const others = many.flatMap((row, at) => row.filter((_, to) => to !== at));
  const [least, most] = [Math.min(...others), Math.max(...others)];
  const strength = (score) => (most > least ? Math.min(1, Math.max(0, (score - least) / (most - least))) : 0.5);
  const head = make(
    "tr",
    {},
    make("td"),
    texts.map((_, at) => make("th", { scope: "col" }, String(at + 1))),
  );
  const rows = many.map((row, at) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("span", { class: "line" }, `${at + 1}`), make("bdi", {}, texts[at])),
      row.map((score, to) => cell(score, strength(score), at, to)),
    ),
  );
  find("heat-scroll").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

function cell(score, strength, row, column) {
  const found = make(
    "td",
    { class: row === column ? "same" : strength > 0.72 ? "strong" : strength > 0.5 ? "middling" : null },
    score.toFixed(2).replace(/^(-?)0\./, "$1."),
  );
  found.style.setProperty("--strength", `${Math.round(strength * 100)}%`);
  Object.assign(found.dataset, { row, column, score: score.toFixed(3) });
  return found;
}

function describe(found) {
  if (!found?.dataset.score) return;
  const [one, other] = [state.texts[found.dataset.row], state.texts[found.dataset.column]];
  find("heat-pair").replaceChildren(
    make("strong", {}, found.dataset.score),
    " ",
    make("bdi", {}, one),
    " ↔ ",
    make("bdi", {}, other),
  );
}
