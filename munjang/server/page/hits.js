// One order of hits as a list: rank, what moved, text, metadata, score as a bar.

import { make } from "./dom.js";
import { say } from "./language.js";

// Bars are shares of the best score; where scores go below zero, of the range between the worst and the best.
export function shares(scores) {
  const best = Math.max(...scores);
  const worst = Math.min(0, ...scores);
  return scores.map((score) => (best > worst ? (score - worst) / (best - worst) : 0));
}

export function movement(before, now) {
  if (before === undefined) return { kind: "new", shown: "＊", told: "" };
  const number = Math.abs(before - now);
  const kind = before > now ? "up" : before < now ? "down" : "same";
  const shown = { up: `▲ ${number}`, down: `▼ ${number}`, same: "＝" }[kind];
  return { kind, shown, told: say(kind, { number, rank: before }) };
}

export function render(list, hits, { ranks, onOpen, onFilter }) {
  const widths = shares(hits.map((hit) => hit.score));
  list.replaceChildren(
    ...hits.map((hit, place) => {
      const moved = ranks ? movement(ranks.get(hit.document_id), place + 1) : null;
      return card(hit, place + 1, widths[place], moved, onOpen, onFilter);
    }),
  );
}

function card(hit, rank, share, moved, onOpen, onFilter) {
  const bar = make("span", { class: "fill" });
  bar.style.setProperty("width", `${Math.max(share * 100, 1)}%`);
  const score = hit.score.toFixed(3);
  const scored = make(
    "div",
    { class: "score", "aria-hidden": "true" },
    make("span", { class: "track" }, bar),
    make("span", { class: "figure" }, score),
  );
  const open = make("button", { type: "button", class: "open", tabindex: -1, onclick: () => onOpen(hit) });
  open.append(
    make("span", { class: "text", dir: "auto", lang: language(hit.metadata) }, marked(hit)),
    make("span", { class: "unseen" }, ` ${say("score", { score })} ${moved?.told ?? ""}`),
  );
  const item = make(
    "li",
    { class: "hit" },
    make(
      "div",
      { class: "rank", "aria-hidden": "true" },
      make("span", { class: "place" }, String(rank)),
      moved ? make("span", { class: `moved ${moved.kind}` }, moved.shown) : null,
    ),
    make("div", { class: "body" }, open, make("div", { class: "below" }, about(hit.metadata, onFilter), ways(hit), scored)),
  );
  item.dataset.document = hit.document_id;
  return item;
}

// The text with the words of the query marked; places count code points, as in Python.
function marked(hit) {
  const letters = [...hit.text];
  const parts = [];
  let end = 0;
  for (const [from, to] of hit.highlights ?? []) {
    parts.push(letters.slice(end, from).join(""), make("mark", {}, letters.slice(from, to).join("")));
    end = to;
  }
  return [...parts, letters.slice(end).join("")];
}

// Which way found the hit, and at which rank
function ways(hit) {
  const found = Object.entries(hit.ranks ?? {}).map(([way, rank]) => `${say(`way_${way}`)} ${rank}`);
  return make("span", { class: "ways" }, found.length ? say("found_by", { ways: found.join(", ") }) : "");
}

const language = (metadata) => (["ko", "en"].includes(metadata.lang) ? metadata.lang : null);

function about(metadata, onFilter) {
  const known = Object.entries(metadata).filter(([, value]) => value !== null);
  return make(
    "div",
    { class: "about" },
    known.map(([name, value]) =>
      make(
        "button",
        {
          type: "button",
          class: "chip",
          tabindex: -1,
          "aria-label": say("filter_by", { name, value }),
          onclick: () => onFilter(name, value),
        },
        make("bdi", {}, String(value)),
      ),
    ),
  );
}
