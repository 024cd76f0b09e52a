// The map of topics: points to hover, a search box, a legend to click. Texts arrive as JSON and are only shown as text.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const canvas = find("map");
const pen = canvas.getContext("2d");
const tip = find("tip");
const hidden = new Set(); // topics
const lower = data.texts.map((text) => text.toLowerCase());
const extent = Math.max(0.3, ...data.topics.map(({ place: [x, y], radius }) => Math.max(Math.abs(x), Math.abs(y)) + radius));
const view = { x: 0, y: 0, zoom: 1 };
let size = { width: 1, height: 1 };
let matches = null; // rows that hold what is searched for
let dragged = null;

const colour = (topic) =>
  topic < 0 ? "#8a8f8d" : `hsl(${(topic * 137.508 + 205) % 360} 52% ${topic % 2 ? 46 : 56}%)`;
const label = (topic) => (topic < 0 ? say("no_topic") : data.topics[topic].label);
const scale = () => ((Math.min(size.width, size.height) * 0.42) / extent) * view.zoom;

function toScreen(x, y) {
  return [size.width / 2 + (x - view.x) * scale(), size.height / 2 + (y - view.y) * scale()];
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  const radius = Math.max(1.5, Math.min(5, (60 / Math.sqrt(data.points.length)) * Math.sqrt(view.zoom)));
  data.points.forEach(([x, y, topic], row) => {
    if (hidden.has(topic)) return;
    const [a, b] = toScreen(x, y);
    if (a < -9 || b < -9 || a > size.width + 9 || b > size.height + 9) return;
    const isMatch = matches?.has(row);
    pen.globalAlpha = matches && !isMatch ? 0.06 : 0.75;
    pen.fillStyle = colour(topic);
    pen.beginPath();
    pen.arc(a, b, isMatch ? radius + 1.5 : radius, 0, 7);
    pen.fill();
  });
  drawLabels();
}

// The first terms of each topic, but not over those of a larger one
function drawLabels() {
  const style = getComputedStyle(canvas.parentElement);
  pen.globalAlpha = 1;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `600 13px ${style.fontFamily}`;
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = style.backgroundColor;
  pen.fillStyle = style.color;
  const taken = [];
  data.topics.forEach((topic, number) => {
    if (hidden.has(number)) return;
    const text = topic.terms.slice(0, 2).join(", ");
    const half = pen.measureText(text).width / 2;
    const [x, b] = toScreen(...topic.place);
    const a = half > size.width / 2 - 8 ? size.width / 2 : Math.max(half + 8, Math.min(x, size.width - half - 8));
    if (x < 0 || x > size.width) return;
    if (taken.some(([other, y, wide]) => Math.abs(other - a) < wide + half && Math.abs(y - b) < 16)) return;
    taken.push([a, b, half]);
    pen.strokeText(text, a, b);
    pen.fillText(text, a, b);
  });
}

function resize() {
  const box = canvas.parentElement.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  size = { width: box.width, height: box.height };
  canvas.width = box.width * ratio;
  canvas.height = box.height * ratio;
  draw();
}

function nearest(a, b) {
  let best = null;
  let least = 144; // 12 pixels, squared
  data.points.forEach(([x, y, topic], row) => {
    if (hidden.has(topic) || (matches && !matches.has(row))) return;
    const [px, py] = toScreen(x, y);
    const distance = (px - a) ** 2 + (py - b) ** 2;
    if (distance < least) [least, best] = [distance, row];
  });
  return best;
}

function hover(event) {
  const box = canvas.getBoundingClientRect();
  const [a, b] = [event.clientX - box.left, event.clientY - box.top];
  const row = nearest(a, b);
  tip.hidden = row === null;
  if (row === null) return;
  find("tip-topic").textContent = label(data.points[row][2]);
  find("tip-text").textContent = data.texts[row];
  tip.style.left = `${Math.max(4, Math.min(a + 14, size.width - tip.offsetWidth - 6))}px`;
  tip.style.top = `${Math.max(4, Math.min(b + 14, size.height - tip.offsetHeight - 6))}px`;
}

function paintFacts() {
  const number = new Intl.NumberFormat(language);
  const facts = [say("num_topics", { texts: number.format(data.num_texts), topics: number.format(data.topics.length) })];
  if (data.points.length < data.num_texts) facts.push(say("num_drawn", { count: number.format(data.points.length) }));
  if (matches) facts.push(say("num_found", { count: number.format(matches.size) }));
  find("facts").textContent = facts.join(" · ");
}

const numbers = [...data.topics.keys(), ...(data.num_outliers ? [-1] : [])];

function paintLegend() {
  find("legend").replaceChildren(...numbers.map(legendEntry));
}

function legendEntry(number) {
  const item = document.createElement("li");
  const [button, spot, name, count] = ["button", "span", "bdi", "small"].map((tag) => document.createElement(tag));
  button.type = "button";
  button.className = "group";
  spot.className = "spot";
  spot.style.background = colour(number);
  name.textContent = label(number);
  count.textContent = number < 0 ? data.num_outliers : data.topics[number].size;
  button.title = number < 0 ? "" : data.topics[number].terms.join(", ");
  button.setAttribute("aria-pressed", String(!hidden.has(number)));
  button.append(spot, name, count);
  button.addEventListener("click", () => {
    if (!hidden.delete(number)) hidden.add(number);
    button.setAttribute("aria-pressed", String(!hidden.has(number)));
    draw();
  });
  item.append(button);
  return item;
}

find("all").addEventListener("click", () => {
  const isShown = hidden.size === 0; // a second click hides all, to pick a few
  for (const number of numbers) isShown ? hidden.add(number) : hidden.delete(number);
  paintLegend();
  draw();
});
find("search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  matches = wanted ? new Set(lower.flatMap((text, row) => (text.includes(wanted) ? [row] : []))) : null;
  paintFacts();
  draw();
});
canvas.addEventListener("pointerdown", (event) => {
  dragged = event;
  canvas.setPointerCapture(event.pointerId);
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (dragged = null));
canvas.addEventListener("pointerleave", () => (tip.hidden = true));
canvas.addEventListener("pointermove", (event) => {
  if (!dragged) return hover(event);
  view.x -= (event.clientX - dragged.clientX) / scale();
  view.y -= (event.clientY - dragged.clientY) / scale();
  dragged = event;
  tip.hidden = true;
  draw();
});
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    view.zoom = Math.max(0.5, Math.min(40, view.zoom * Math.exp(-event.deltaY / 400)));
    draw();
  },
  { passive: false },
);
for (const spot of document.querySelectorAll("[data-topic]")) spot.style.background = colour(Number(spot.dataset.topic));
document.addEventListener("spoken", () => [paintLegend(), paintFacts()]);
document.addEventListener("themechange", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", resize);
paintLegend();
paintFacts();
resize();
