// Searching as one types: retrieval at once, then the re-ranked order beside it; only the newest answers count.

import { Gone, Refused, ask, events } from "./api.js";
import { find, later, make, tell } from "./dom.js";
import { facts } from "./facts.js";
import { count, number, onLanguage, say } from "./language.js";
import { render } from "./hits.js";
import { recall, remember } from "./keep.js";
import { connect, highlight } from "./moves.js";
import * as adding from "./adding.js";
import * as sheet from "./document.js";

const DELAY = 120; // milliseconds after the last key
const PATIENCE = 600;
const CANDIDATES = 50;
const PAGE = 10;
const state = { query: "", retrieved: null, reranked: null, ms: 0, rerankMs: 0, shown: PAGE, note: "" };
let running = null; // of the newest search; older ones are cut off and their answers dropped

export const hitIds = () => new Set((state.retrieved ?? []).slice(0, state.shown).map((hit) => hit.document_id));

export function start() {
  const soon = later(DELAY, search);
  find("query").addEventListener("input", soon);
  find("where").addEventListener("input", soon);
  for (const id of ["rerank", "words"]) {
    find(id).checked = recall(id) !== "no";
    find(id).addEventListener("change", () => {
      remember(id, find(id).checked ? "yes" : "no");
      search();
    });
  }
  find("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  find("more").addEventListener("click", showMore);
  find("add").addEventListener("click", () => adding.show());
  for (const name of ["retrieved", "reranked"]) find(`show-${name}`).addEventListener("click", () => choose(name));
  find("orders").addEventListener("pointerover", (event) =>
    highlight(event.target.closest("li")?.dataset.document ?? null),
  );
  find("orders").addEventListener("focusin", (event) =>
    highlight(event.target.closest("li")?.dataset.document ?? null),
  );
  new ResizeObserver(() => connect()).observe(find("orders"));
  onLanguage(paint);
  events.addEventListener("learned", paint);
}

export function look(query) {
  find("query").value = query;
  return search();
}

export async function search() {
  running?.abort();
  const mine = (running = new AbortController());
  const query = find("query").value.trim();
  const keepShown = query === state.query;
  state.note = "";
  if (!query || !facts.hasIndex) {
    Object.assign(state, { query, retrieved: null, reranked: null, shown: PAGE });
    tell(find("where-problem"), "");
    events.dispatchEvent(new Event("searched"));
    paint();
    return;
  }
  if (!state.retrieved) find("status").textContent = say("searching");
  const body = {
    query,
    index: facts.index,
    k: CANDIDATES,
    candidates: CANDIDATES,
    where: find("where").value.trim() || null,
    by: find("words").checked ? null : facts.ways.filter((way) => way !== "words"),
  };
  try {
    const [retrieved, ms] = await timed(body, mine.signal);
    if (mine !== running) return;
    Object.assign(state, { query, retrieved, ms, reranked: null, shown: keepShown ? state.shown : PAGE });
    tell(find("where-problem"), "");
    events.dispatchEvent(new Event("searched"));
    paint();
    if (!facts.hasReranker || !find("rerank").checked || !retrieved.length) return;
    const [reranked, rerankMs] = await timed({ ...body, rerank: true }, mine.signal);
    if (mine !== running) return;
    Object.assign(state, { reranked, rerankMs });
    paint();
  } catch (problem) {
    if (mine === running) complain(problem, body.where !== null);
  }
}

async function timed(body, signal) {
  const started = performance.now();
  const { hits } = await ask("POST", "search", body, signal);
  return [hits, Math.round(performance.now() - started)];
}

function complain(problem, hasFilter) {
  if (problem.name === "AbortError" || problem instanceof Gone) return;
  if (!(problem instanceof Refused)) throw problem;
  if (problem.status === 429) {
    const seconds = Math.max(problem.waitSeconds, 1);
    find("status").textContent = say("busy", { seconds });
    setTimeout(search, seconds * 1000);
  } else if (problem.status === 422 && hasFilter) {
    const mine = running; // a filter is wrong while it is being written; only one that stays so is worth a word
    const reason = problem.message.replace(/^The filter can't be read: /, ""); // the page says that in its own words
    setTimeout(() => mine === running && tell(find("where-problem"), say("where_wrong", { reason })), PATIENCE);
  } else {
    find("status").textContent = say("failed", { reason: problem.message });
  }
}

function choose(name) {
  find("orders").dataset.show = name;
  for (const each of ["retrieved", "reranked"])
    find(`show-${each}`).setAttribute("aria-pressed", String(each === name));
}

function showMore() {
  const first = state.shown;
  state.shown += PAGE;
  paint();
  find("retrieved-hits").children[first]?.querySelector(".open")?.focus();
}

function paint() {
  paintControls();
  const { retrieved, reranked } = state;
  const isSplit = facts.hasReranker && find("rerank").checked;
  find("welcome").hidden = retrieved !== null;
  find("orders").hidden = !retrieved?.length;
  find("orders").classList.toggle("split", isSplit);
  find("order-switch").hidden = !retrieved?.length || !isSplit;
  find("more").hidden = !retrieved || retrieved.length <= state.shown;
  if (!find("orders").dataset.show) choose("reranked");
  if (retrieved === null) {
    find("status").textContent = state.note;
    welcome();
    return;
  }
  find("retrieved-title").textContent = say(isSplit ? "retrieved" : "retrieved_alone");
  const actions = { onOpen: (hit) => sheet.show(hit, look), onFilter: filterBy };
  const focused = focusedHit();
  render(find("retrieved-hits"), retrieved.slice(0, state.shown), actions);
  const ranks = new Map(retrieved.map((hit, place) => [hit.document_id, place + 1]));
  find("reranked").setAttribute("aria-busy", String(isSplit && !reranked));
  render(find("reranked-hits"), isSplit ? (reranked ?? []).slice(0, state.shown) : [], { ...actions, ranks });
  find("status").textContent = state.note || sentence(isSplit);
  refocus(focused);
  connect();
}

function sentence(isSplit) {
  const { retrieved, reranked, ms, rerankMs } = state;
  if (!retrieved.length) return say("no_hits");
  const values = { count: count(retrieved.length), ms: number(ms), rerank: number(rerankMs) };
  return say(!isSplit ? "found" : reranked ? "found_reranked" : "reranking", values);
}

function paintControls() {
  find("search-form").inert = facts.models.length > 0 && !facts.hasIndex;
  find("rerank").parentElement.hidden = !facts.hasReranker;
  const fields = Object.entries(facts.fields);
  find("fields").replaceChildren(
    ...fields.map(([name, kind]) =>
      make(
        "button",
        { type: "button", class: "chip field", onclick: () => insert(quoted(name)) },
        make("bdi", {}, name),
        make("small", {}, kind),
      ),
    ),
  );
}

function welcome() {
  const lines = !facts.models.length
    ? []
    : !facts.hasIndex
      ? [say("welcome_none")]
      : facts.passages
        ? [say("welcome"), say("welcome_count", { passages: number(facts.passages) })]
        : [say("welcome_empty")];
  if (facts.hasIndex && !facts.hasReranker) lines.push(say("no_reranker"));
  find("welcome").replaceChildren(...lines.map((line) => make("p", {}, line)));
}

// Names that aren't plain words, and texts, as the filter language wants them
const quoted = (name) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value));

function insert(text) {
  const input = find("where");
  const before = input.value.trim();
  input.value = before ? `${before} and ${text} = ` : `${text} = `;
  input.focus();
}

function filterBy(name, value) {
  const input = find("where");
  const part = `${quoted(name)} = ${literal(value)}`;
  const before = input.value.trim();
  input.value = !before ? part : before.includes(part) ? before : `${before} and ${part}`;
  search();
}

function focusedHit() {
  const item = document.activeElement?.closest?.(".hit");
  return item && { list: item.parentElement.id, document: item.dataset.document };
}

// Answers that arrive while someone reads with the keyboard must not throw them out of the list.
function refocus(focused) {
  for (const list of ["retrieved-hits", "reranked-hits"]) {
    const items = [...find(list).children];
    const held = focused?.list === list ? items.find((item) => item.dataset.document === focused.document) : null;
    (held ?? items[0])?.querySelector(".open").setAttribute("tabindex", "0");
    held?.querySelector(".open").focus();
  }
}

// Said once, in place of the count, until the next search
export function announce(text) {
  state.note = text;
  find("status").textContent = text;
}
