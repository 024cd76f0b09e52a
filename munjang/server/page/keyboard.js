// Keys: / to the query, arrows through hits and between the orders, Esc back.

import { find } from "./dom.js";

const TYPING = "input, textarea, select, [contenteditable]";

export function start(showSearch) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return; // Hangul that is still being made
    if (document.querySelector("dialog[open]")) return;
    const handled = inQuery(event) || inHits(event) || anywhere(event, showSearch);
    if (handled) event.preventDefault();
  });
}

function anywhere(event, showSearch) {
  if (event.key !== "/" || event.target.matches(TYPING)) return false;
  showSearch();
  find("query").focus();
  find("query").select();
  return true;
}

function inQuery(event) {
  if (event.target.id !== "query") return false;
  if (event.key === "ArrowDown") return focusHit(visibleLists()[0], 0);
  if (event.key === "Escape" && event.target.value) {
    event.target.value = "";
    event.target.dispatchEvent(new Event("input"));
    return true;
  }
  return false;
}

function inHits(event) {
  const item = event.target.closest?.(".hit");
  if (!item) return false;
  const lists = visibleLists();
  const column = lists.indexOf(item.parentElement);
  const row = [...item.parentElement.children].indexOf(item);
  if (event.key === "Escape" || (event.key === "ArrowUp" && row === 0)) {
    find("query").focus();
    return true;
  }
  const step = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  if (event.key === "Home") return focusHit(lists[column], 0);
  if (event.key === "End") return focusHit(lists[column], lists[column].children.length - 1);
  return step ? focusHit(lists[column + step[0]], row + step[1]) : false;
}

const visibleLists = () =>
  ["retrieved-hits", "reranked-hits"].map(find).filter((list) => list.children.length && list.offsetParent !== null);

function focusHit(list, row) {
  const item = list?.children[Math.min(row, list.children.length - 1)];
  if (!item) return false;
  for (const each of list.querySelectorAll("button")) each.setAttribute("tabindex", "-1");
  for (const each of item.querySelectorAll("button")) each.setAttribute("tabindex", "0");
  item.querySelector(".open").focus();
  item.scrollIntoView({ block: "nearest" });
  return true;
}
