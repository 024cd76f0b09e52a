// What this server has: models, a re-ranker or not, an index with its fields or not.

import { ask, events } from "./api.js";

const NOTHING = { models: [], hasEmbedder: false, hasReranker: false, hasIndex: false, passages: 0, fields: {} };
export const facts = { ...NOTHING, ways: ["dense"] };

export async function learn() {
  const info = await ask("GET", "info");
  const kinds = Object.values(info.models).map((model) => model.kind);
  facts.models = Object.keys(info.models);
  facts.hasEmbedder = kinds.includes("embedding");
  facts.hasReranker = kinds.includes("reranker");
  facts.hasIndex = info.has_index;
  facts.ways = Object.values(info.ways)[0] ?? facts.ways; // of the first index, which the page searches
  if (facts.hasIndex) {
    const { passages, fields } = await ask("GET", "documents");
    Object.assign(facts, { passages, fields });
  }
  events.dispatchEvent(new Event("learned"));
}
