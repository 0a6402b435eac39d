// Keeps a page true: what changed is told over a websocket, then the fragments that show it are fetched anew.
//
// <main data-live="/ws/…/" data-after="12">: where to listen, and the newest event the page already shows.
// Fragments refresh on the event "refresh" at the body (hx-trigger="refresh from:body"). One that comes while another
// is under way waits its turn (hx-sync): an aborted request would be an error in the console. One that would come
// while somebody types waits until they are done. Focus stays where it was, on what stands there now. What is being
// pressed stays, too: a button that is another one when it is let go is not clicked.

import { connect } from "./socket.js";

const page = document.querySelector("[data-live]");
const pause = Number(page?.dataset.pause || 60); // without it, the page's fragments go by a beat alone
let after = page?.dataset.after;
let waiting;

const isTyping = () => document.activeElement?.matches("[hx-trigger*='refresh'] :is(input, textarea)");

function refresh() {
  waiting ??= setTimeout(function now() {
    if (isTyping()) {
      waiting = setTimeout(now, 1000);
      return;
    }
    waiting = undefined;
    document.body.dispatchEvent(new Event("refresh"));
  }, pause);
}

if (page) connect(() => page.dataset.live + (after === undefined ? "" : `?after=${after}`), {
  onMessage(message) {
    if (message.type === "event") {
      after = message.event.id;
      document.dispatchEvent(new CustomEvent("berth:event", { detail: message.event }));
    }
    refresh(); // at the first message too: something may have changed since the page was made
  },
});

// For a page that nobody sees nothing is fetched, not by a beat either (hx-trigger="every 20s"); once it is shown, all
// of it is at once. What goes by a beat alone hears of that by the event "shown".
let isBehind = false;

document.addEventListener("htmx:beforeRequest", (request) => {
  if (!document.hidden || request.detail.requestConfig.verb !== "get") return;
  request.preventDefault();
  isBehind = true;
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !isBehind) return;
  isBehind = false;
  for (const name of ["refresh", "shown"]) document.body.dispatchEvent(new Event(name));
});

// What has no id is known again by what it is and says; how long ago something was changes as it stands there.
const focusable = "a[href], button, summary, input, textarea, [tabindex]";
const known = (part) => part.id || [part.tagName, part.getAttribute("href"), words(part)].join("|");

function words(part) {
  const copy = part.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.remove();
  return copy.textContent.trim();
}

// Nobody presses for longer; and that it was let go is not told of everywhere.
const longestPress = 1000;
let pressedAt = -Infinity;

document.addEventListener("pointerdown", () => { pressedAt = performance.now(); }, true);
for (const letGo of ["pointerup", "pointercancel"]) {
  document.addEventListener(letGo, () => { pressedAt = -Infinity; }, true);
}

let focused;
let left; // how far a wide table is moved
let anchor; // first row of a list on the screen, and how far down: it stays there, whatever comes above it

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.matches("[hx-trigger*='refresh']") && performance.now() - pressedAt < longestPress) {
    detail.shouldSwap = false;
    refresh(); // it is fetched again
    return;
  }
  const rows = scrollY > 0 ? detail.target.querySelectorAll("article[id], tr[id]") : [];
  const row = [...rows].find((one) => one.getBoundingClientRect().bottom > 0);
  anchor = row && { id: row.id, top: row.getBoundingClientRect().top };
  left = detail.target.querySelector(".table-scroll")?.scrollLeft;
  focused = detail.target.contains(document.activeElement) ? known(document.activeElement) : undefined;
});

// At once, not when what came has settled: until then a key would go to the page's start, and what is swapped next
// would find nothing focused.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (focused && !detail.elt.contains(document.activeElement)) {
    const same = [...detail.elt.querySelectorAll(focusable)].find((part) => known(part) === focused);
    same?.focus({ preventScroll: true });
  }
  const row = anchor && document.getElementById(anchor.id);
  if (row) scrollBy({ top: row.getBoundingClientRect().top - anchor.top, behavior: "instant" });
  anchor = undefined;
  if (left) detail.elt.querySelector(".table-scroll")?.scrollTo({ left, behavior: "instant" });
  left = undefined;
  say(detail.elt);
});

// A state that changed is said once: [data-state] in the fragment is what is said in the page's [data-said].
function say(fragment) {
  const state = fragment.querySelector("[data-state]")?.dataset.state;
  const said = document.querySelector("[data-said]");
  if (state && said && said.dataset.last !== state) {
    if (said.dataset.last) said.textContent = state;
    said.dataset.last = state;
  }
}
say(document.body);
