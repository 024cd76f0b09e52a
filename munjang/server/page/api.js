// Requests to this server: its key, its errors as plain sentences, and whether it is there at all.

import { recallHere, rememberHere } from "./keep.js";

export const events = new EventTarget(); // gone and locked from here; learned, searched, wrote, back from others

export class Refused extends Error {
  constructor(status, message, waitSeconds) {
    super(message);
    this.status = status;
    this.waitSeconds = waitSeconds;
  }
}

export class Gone extends Error {}

let key = recallHere("key") ?? "";
let unlocking = null;

export async function ask(method, path, body, signal) {
  for (;;) {
    const used = key;
    const answer = await send(method, path, body, signal);
    if (answer.status !== 401) return read(answer);
    if (used === key) await unlocked(used !== "");
  }
}

async function send(method, path, body, signal) {
  const headers = { accept: "application/json" };
  const isFile = body instanceof Blob;
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers["content-type"] = isFile ? "application/octet-stream" : "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined || isFile ? body : JSON.stringify(body),
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    answer = null;
  }
  if (answer === null || answer.status === 503) {
    events.dispatchEvent(new Event("gone"));
    throw new Gone();
  }
  return answer;
}

async function read(answer) {
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  const wait = Number(answer.headers.get("retry-after")) || 0;
  throw new Refused(answer.status, content.error ?? answer.statusText, wait);
}

// All requests that were refused wait for the same key.
function unlocked(wasWrong) {
  unlocking ??= new Promise((resolve) => {
    events.dispatchEvent(new CustomEvent("locked", { detail: { wasWrong, unlock: resolve } }));
  }).then((given) => {
    key = given;
    rememberHere("key", given);
    unlocking = null;
  });
  return unlocking;
}

export const hasKey = () => key !== "";

// Another key, or none: everything is asked for again.
export function changeKey(given) {
  key = given;
  rememberHere("key", given);
  events.dispatchEvent(new Event("back"));
}

export async function isThere() {
  try {
    return (await fetch("ready", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}
