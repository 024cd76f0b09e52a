// The corpus in two dimensions: dots coloured by cluster or metadata, to point at, walk through by arrows, and open.

import { Gone, Refused, ask, events } from "./api.js";
import * as sheet from "./document.js";
import { draw, find, make } from "./dom.js";
import { facts, inIndex } from "./facts.js";
import { number, onLanguage, say } from "./language.js";
import { groupings } from "./groups.js";
import { hitIds, look } from "./search.js";

const SIZE = { width: 900, height: 620, margin: 26 };
const view = { zoom: 1, x: SIZE.width / 2, y: SIZE.height / 2 };
const state = { map: null, active: -1, chosen: null, by: "", group: null, isStale: true };
let dots = [];
let drag = null;

export function start() {
  find("zoom-in").addEventListener("click", () => zoom(1.5));
  find("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
  find("zoom-all").addEventListener("click", () => zoom(0));
  find("colours").addEventListener("change", () => {
    state.by = find("colours").value;
    paintGroups();
  });
  onLanguage(() => state.map && paint());
  for (const name of ["learned", "wrote"]) events.addEventListener(name, () => (state.isStale = true));
  events.addEventListener("searched", () => state.map && ring());
}

export async function open() {
  if (!facts.hasIndex) {
    find("map-status").textContent = facts.models.length ? say("welcome_none") : "";
    return;
  }
  if (!state.isStale) {
    if (state.map) ring(); // else it is on its way
    return;
  }
  if (!state.map) find("map-status").textContent = say("map_loading");
  state.isStale = false;
  try {
    state.map = await ask("GET", inIndex("map"));
    Object.assign(state, { active: -1, chosen: null });
    paint();
  } catch (problem) {
    state.isStale = true;
    if (problem instanceof Refused) find("map-status").textContent = say("failed", { reason: problem.message });
    else if (!(problem instanceof Gone)) throw problem;
  }
}

const across = (x) => SIZE.margin + ((x + 1) / 2) * (SIZE.width - 2 * SIZE.margin);
const down = (y) => SIZE.margin + ((1 - y) / 2) * (SIZE.height - 2 * SIZE.margin);

function paint() {
  const { points, clusters, num_passages } = state.map;
  const values = { shown: number(points.length), total: number(num_passages), clusters: clusters.length };
  find("map-status").textContent =
    `${say(points.length < num_passages ? "map_part" : "map_found", values)} · ${say("map_hits")}`;
  dots = points.map((point, place) => dot(point, place));
  const picture = draw(
    "svg",
    {
      id: "picture",
      role: "listbox",
      tabindex: 0,
      "aria-label": say("map_label"),
      onkeydown: walk,
      onpointerdown: grab,
      onpointermove: pull,
      onpointerup: release,
      onpointercancel: release,
    },
    dots,
  );
  picture.addEventListener(
    "wheel",
    (event) => event.ctrlKey && (event.preventDefault(), zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2)),
    { passive: false },
  );
  find("plot").replaceChildren(picture);
  zoom(1);
  paintGroups();
  point(-1);
}

// What the colours mean: the choice, the legend, and the dots
function paintGroups() {
  const all = groupings(state.map);
  state.group = all.find((each) => each.field === state.by) ?? all[0];
  state.chosen = null;
  find("colours").replaceChildren(
    ...all.map((each) => make("option", { value: each.field, selected: each === state.group }, each.title)),
  );
  find("groups").replaceChildren(...state.group.items.map(legend));
  dots.forEach((each, place) => each.setAttribute("class", `dot ${colour(place)}`));
  ring();
}

const colour = (place) => `colour-${state.group.of[place]}`;

function dot(point_, place) {
  return draw("circle", {
    id: `dot-${place}`,
    role: "option",
    cx: across(point_.x),
    cy: down(point_.y),
    "aria-label": point_.text,
    onpointerenter: () => point(place),
  });
}

function legend(item, place) {
  const choose = () => {
    state.chosen = state.chosen === place ? null : place;
    ring();
  };
  const button = make(
    "button",
    { type: "button", class: "group", "aria-pressed": "false", onclick: choose },
    make("span", { class: `spot colour-${place}`, "aria-hidden": "true" }),
    make("bdi", {}, item.title),
    make("small", {}, say("group", { size: number(item.size) })),
  );
  return make("li", {}, button);
}

// Hits of the search stand out, and so does a chosen group.
function ring() {
  const ids = hitIds();
  state.map.points.forEach((each, place) => {
    dots[place].classList.toggle("found", ids.has(each.document_id));
    dots[place].classList.toggle("faded", state.chosen !== null && state.group.of[place] !== state.chosen);
  });
  [...find("groups").children].forEach((item, place) =>
    item.firstChild.setAttribute("aria-pressed", String(place === state.chosen)),
  );
}

function point(place) {
  dots[state.active]?.classList.remove("active");
  state.active = place;
  const label = find("map-point");
  if (place < 0) {
    label.textContent = say("map_hint");
    return;
  }
  const { text, metadata } = state.map.points[place];
  dots[place].classList.add("active");
  find("picture").setAttribute("aria-activedescendant", dots[place].id);
  const known = Object.values(metadata)
    .filter((value) => value !== null)
    .join(" · ");
  label.replaceChildren(
    make("span", { class: `spot ${colour(place)}`, "aria-hidden": "true" }),
    make("bdi", {}, text),
    make("small", {}, make("bdi", {}, known)),
  );
}

const openActive = () =>
  sheet.show(state.map.points[state.active], (text) => {
    find("tab-search").click();
    return look(text);
  });

function walk(event) {
  const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (event.key === "Enter" && state.active >= 0) openActive();
  else if (event.key === "Escape") point(-1);
  else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.5 : 1 / 1.5);
  else if (step) point(state.active < 0 ? 0 : nearest(step));
  else return;
  event.preventDefault();
}

// The closest dot in a direction; being off to the side counts twice.
function nearest([right, below]) {
  const place = (each) => [across(each.x), down(each.y)];
  const [x, y] = place(state.map.points[state.active]);
  let best = state.active;
  let least = Infinity;
  state.map.points.forEach((each, at) => {
    const [dx, dy] = [place(each)[0] - x, place(each)[1] - y];
    const ahead = dx * right + dy * below;
    const distance = ahead + 2 * Math.abs(dx * below + dy * right);
    if (ahead > 0.01 && distance < least) [best, least] = [at, distance];
  });
  return best;
}

function zoom(factor) {
  view.zoom = factor ? Math.min(12, Math.max(1, view.zoom * factor)) : 1;
  const [width, height] = [SIZE.width / view.zoom, SIZE.height / view.zoom];
  view.x = Math.min(SIZE.width - width / 2, Math.max(width / 2, view.x));
  view.y = Math.min(SIZE.height - height / 2, Math.max(height / 2, view.y));
  const picture = find("picture");
  picture?.setAttribute("viewBox", `${view.x - width / 2} ${view.y - height / 2} ${width} ${height}`);
  picture?.style.setProperty("--zoom", String(view.zoom));
}

function grab(event) {
  drag = { x: event.clientX, y: event.clientY, isMoved: false };
}

function pull(event) {
  if (!drag) return;
  const scale = SIZE.width / view.zoom / find("picture").clientWidth;
  const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
  if (!drag.isMoved && Math.hypot(dx, dy) < 4) return;
  Object.assign(drag, { x: event.clientX, y: event.clientY, isMoved: true });
  view.x -= dx * scale;
  view.y -= dy * scale;
  zoom(1);
}

function release(event) {
  const place = dots.indexOf(event.target);
  if (drag && !drag.isMoved && place >= 0 && event.type === "pointerup") {
    point(place);
    openActive();
  }
  drag = null;
}
