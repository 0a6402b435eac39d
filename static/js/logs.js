// Follows a log: lines come over a websocket; the view stays at the end while the reader is there.

import { connect } from "./socket.js";

const MOST_LINES = 5000;
const view = document.querySelector("[data-log]");
const note = document.querySelector("[data-log-note]");
let lines = [];
let drawing;

function draw() {
  drawing = undefined;
  const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
  view.textContent = lines.join("\n");
  if (atEnd) view.scrollTop = view.scrollHeight;
}

connect(() => view.dataset.log, {
  onOpen() {
    lines = []; // the server tells the last lines again
  },
  onMessage(message) {
    if (message.type === "line") {
      lines.push(message.line);
      if (lines.length > MOST_LINES) lines = lines.slice(-MOST_LINES);
    }
    if (message.type === "start") lines = [];
    note.textContent = message.type === "note" ? message.message : "";
    drawing ??= requestAnimationFrame(draw);
  },
});
