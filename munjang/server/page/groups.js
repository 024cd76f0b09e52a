// What dots can be coloured by: their clusters, or a field of texts with few values.

import { say } from "./language.js";

const MOST = 12; // colours that people tell apart; page and server agree

export function groupings({ points, clusters }) {
  const named = clusters.map((cluster, place) => ({
    title: cluster.words.join(" · ") || say("cluster_plain", { number: place + 1 }),
    size: cluster.size,
  }));
  const byCluster = { field: "", title: say("by_cluster"), of: points.map((point) => point.cluster), items: named };
  const fields = [...new Set(points.flatMap((point) => Object.keys(point.metadata)))].sort();
  return [byCluster, ...fields.map((field) => byField(points, field)).filter(Boolean)];
}

function byField(points, field) {
  const values = points.map((point) => point.metadata[field] ?? null);
  if (values.some((value) => value !== null && typeof value === "number")) return null; // a number is no group
  const sizes = new Map();
  for (const value of values) sizes.set(value, (sizes.get(value) ?? 0) + 1);
  if (sizes.size < 2 || sizes.size > MOST) return null;
  const order = [...sizes.keys()].sort((one, other) => sizes.get(other) - sizes.get(one));
  const items = order.map((value) => ({
    title: value === null ? say("group_none") : String(value),
    size: sizes.get(value),
  }));
  return { field, title: field, of: values.map((value) => order.indexOf(value)), items };
}
