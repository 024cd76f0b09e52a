// Lines between the two orders, from where a document stood to where it stands now.

import { draw, find } from "./dom.js";

const WIDTH = 64;

export function connect() {
  const area = find("moves");
  const top = area.getBoundingClientRect().top;
  const height = find("orders").getBoundingClientRect().height;
  area.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  const left = middles("retrieved-hits", top);
  const right = middles("reranked-hits", top);
  const lines = [...right].filter(([id]) => left.has(id)).map(([id, to]) => line(id, left.get(id), to));
  area.replaceChildren(...lines);
}

function middles(list, top) {
  const found = new Map();
  [...find(list).children].forEach((item, place) => {
    const box = item.getBoundingClientRect();
    found.set(item.dataset.document, { y: box.top + box.height / 2 - top, place });
  });
  return found;
}

function line(id, from, to) {
  const kind = to.place < from.place ? "up" : to.place > from.place ? "down" : "same";
  const bend = WIDTH / 2;
  const path = draw("path", { class: kind, d: `M0 ${from.y}C${bend} ${from.y} ${bend} ${to.y} ${WIDTH} ${to.y}` });
  path.dataset.document = id;
  return path;
}

// Pointing at a hit shows it in the other order too.
export function highlight(id) {
  for (const element of find("orders").querySelectorAll("[data-document]")) {
    element.classList.toggle("paired", id !== null && element.dataset.document === id);
  }
}
