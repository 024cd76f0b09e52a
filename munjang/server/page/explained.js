// Why a hit stands where it does: each way that found it with rank and score, the re-ranker, the final score.

import { make } from "./dom.js";
import { say } from "./language.js";

const shown = (score) => (score === null || score === undefined ? "" : score.toFixed(3));

export function explained(hit) {
  if (hit.score === undefined) return null; // opened from the map: nothing was searched for
  const rows = Object.entries(hit.ranks ?? {}).map(([way, rank]) => [say(`way_${way}`), rank, hit.scores?.[way]]);
  rows.push([say("why_retrieved"), hit.retrieval_rank, hit.retrieval_score]);
  if (hit.rerank_score !== null) rows.push([say("reranked"), "", hit.rerank_score]);
  if (hit.relevance !== null) rows.push([say("why_relevance"), "", hit.relevance]);
  rows.push([say("why_score"), "", hit.score]);
  return make(
    "details",
    { class: "why" },
    make("summary", {}, say("why")),
    make(
      "table",
      {},
      make("thead", {}, row("th", ["", say("why_rank"), say("why_points")])),
      make("tbody", {}, rows.map(([name, rank, score]) => row("td", [name, String(rank), shown(score)]))),
    ),
    make("p", { class: "hint" }, say("why_hint")),
  );
}

const row = (kind, cells) => make("tr", {}, cells.map((cell) => make(kind, {}, cell)));
