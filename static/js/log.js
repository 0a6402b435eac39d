// Follows a log: lines come over a websocket, after those that the page brought; the view stays at the end if wanted.

import { connect } from "./socket.js";

const MOST_LINES = 5000;
const view = document.querySelector("[data-log]");
const note = document.querySelector("[data-log-note]");
const follow = document.querySelector("[data-log-follow]");
const controls = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]/g;
let after = view.dataset.after;
let lines = view.textContent ? view.textContent.split("\n") : [];
let drawing;

// As a terminal would leave it: what was overwritten, and colours, are left out.
function readable(text) {
  const kept = text.replace(/\r+$/, "");
  return kept.slice(kept.lastIndexOf("\r") + 1).replace(controls, "");
}

function toEnd() {
  if (follow.checked) view.scrollTop = view.scrollHeight;
}

function draw() {
  drawing = undefined;
  view.textContent = lines.join("\n");
  toEnd();
}

function address() {
  if (!after) return view.dataset.log;
  return `${view.dataset.log}${view.dataset.log.includes("?") ? "&" : "?"}after=${after}`;
}

connect(address, {
  onMessage(message) {
    if (message.type === "start" && !after) lines = []; // the last lines are told again
    if (message.type === "line") {
      after = message.after;
      const text = readable(message.line);
      lines.push("parts" in view.dataset ? `${message.index}/${message.attempt} │ ${text}` : text);
      if (lines.length > MOST_LINES) lines = lines.slice(-MOST_LINES);
    }
    note.textContent = message.type === "note" && lines.length === 0 ? message.message : "";
    drawing ??= requestAnimationFrame(draw);
  },
});

// Who scrolls up reads: the view goes on to the end only when they come back to it.
view.addEventListener("scroll", () => {
  follow.checked = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
});
follow.addEventListener("change", toEnd);
toEnd();
