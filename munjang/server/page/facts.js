// What this server has for us: models, a re-ranker or not, indexes and the fields of the one we look at.

import { ask, events } from "./api.js";
import { recall, remember } from "./keep.js";

const NOTHING = { indexes: [], index: null, models: [], hasEmbedder: false, hasReranker: false, hasIndex: false, passages: 0, fields: {} };
export const facts = { ...NOTHING, ways: ["dense"] };

export async function learn() {
  const info = await ask("GET", "info");
  const kinds = Object.values(info.models).map((model) => model.kind);
  facts.models = Object.keys(info.models);
  facts.hasEmbedder = kinds.includes("embedding");
  facts.hasReranker = kinds.includes("reranker");
  facts.hasIndex = info.has_index;
  facts.indexes = info.indexes;
  const known = facts.index ?? recall("index");
  facts.index = facts.indexes.includes(known) ? known : (facts.indexes[0] ?? null);
  facts.ways = info.ways[facts.index] ?? facts.ways;
  if (facts.hasIndex) {
    const { passages, fields } = await ask("GET", inIndex("documents"));
    Object.assign(facts, { passages, fields });
  }
  events.dispatchEvent(new Event("learned"));
}

// A path of the index that we look at
export function inIndex(path) {
  return `${path}${path.includes("?") ? "&" : "?"}index=${encodeURIComponent(facts.index)}`;
}

export function choose(index) {
  facts.index = index;
  remember("index", index);
  events.dispatchEvent(new Event("back"));
}
