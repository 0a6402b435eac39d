// Keys that work on every page: g and then a letter goes somewhere, ? lists them. The list is the dialog of the page.
// They can be switched off: who speaks to the machine presses letters without meaning to.

const OFF = "berth-shortcuts-off";
const TOGETHER_MS = 1500;

const list = document.getElementById("shortcuts");
const on = list.querySelector("[data-shortcuts-on]");
let before; // when g was pressed

on.checked = localStorage.getItem(OFF) === null;
on.addEventListener("change", () => {
  if (on.checked) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
});

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (press) => {
  if (!on.checked || press.ctrlKey || press.metaKey || press.altKey || isTyping(press.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const follows = press.timeStamp - before < TOGETHER_MS;
  before = undefined;
  if (press.key === "?") list.showModal();
  else if (follows) list.querySelector(`[data-key="${CSS.escape(press.key)}"]`)?.click();
  else if (press.key === "g") before = press.timeStamp;
});
