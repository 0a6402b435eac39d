// Keeps a page true: what changed is told over a websocket, then the fragments that show it are fetched anew.
//
// <main data-live="/ws/…/" data-after="12">: where to listen, and the newest event the page already shows.
// Fragments refresh on the event "refresh" at the body (hx-trigger="refresh from:body"). One that comes while another
// is under way waits its turn (hx-sync): an aborted request would be an error in the console.

import { connect } from "./socket.js";

const page = document.querySelector("[data-live]");
const pause = Number(page.dataset.pause || 60);
let after = page.dataset.after;
let waiting;

function refresh() {
  waiting ??= setTimeout(() => {
    waiting = undefined;
    document.body.dispatchEvent(new Event("refresh"));
  }, pause);
}

connect(() => page.dataset.live + (after === undefined ? "" : `?after=${after}`), {
  onMessage(message) {
    if (message.type === "event") {
      after = message.event.id;
      document.dispatchEvent(new CustomEvent("berth:event", { detail: message.event }));
    }
    refresh(); // at the first message too: something may have changed since the page was made
  },
});
