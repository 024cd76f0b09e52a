// The server gone and back: a banner that says so, tries again by itself, and tells the views when it is there.

import { events, isThere } from "./api.js";
import { find } from "./dom.js";
import { onLanguage, say } from "./language.js";

const WAITS = [1, 2, 3, 5]; // seconds before each look; the last one goes on
const HEARTBEAT = 30_000;
let isGone = false;
let attempt = 0;
let left = 0;
let timer = 0;

export function start() {
  events.addEventListener("gone", lose);
  find("banner-retry").addEventListener("click", look);
  onLanguage(() => isGone && show());
  setInterval(async () => {
    if (!isGone && !document.hidden && !(await isThere())) lose();
  }, HEARTBEAT);
}

function lose() {
  if (isGone) return;
  isGone = true;
  attempt = 0;
  wait();
}

function wait() {
  left = WAITS[Math.min(attempt, WAITS.length - 1)];
  attempt += 1;
  clearInterval(timer);
  timer = setInterval(() => {
    left -= 1;
    if (left <= 0) look();
    else show();
  }, 1000);
  show();
}

function show() {
  find("banner").dataset.state = "gone";
  find("banner-text").textContent = left > 0 ? say("gone", { seconds: left }) : say("trying");
  find("banner-retry").hidden = false;
  find("banner").hidden = false;
}

async function look() {
  clearInterval(timer);
  left = 0;
  show();
  if (!(await isThere())) {
    wait();
    return;
  }
  isGone = false;
  find("banner").dataset.state = "back";
  find("banner-text").textContent = say("back");
  find("banner-retry").hidden = true;
  setTimeout(() => (find("banner").hidden = !isGone), 2500);
  events.dispatchEvent(new Event("back"));
}
