// Puts new events on top of the list of activity, without fetching it again. Where events are listed by run, the first
// of another run begins a new list above the others.

const blank = document.getElementById("event");
const page = document.documentElement.lang;
const language = page === "en" ? "en-GB" : page; // the day before the month, as the server writes it
const blankRun = document.getElementById("run");

function listFor(run) {
  const newest = document.querySelector("[data-events]");
  if (!blankRun || !run || newest?.dataset.run === run) return newest;
  const part = blankRun.content.firstElementChild.cloneNode(true);
  part.querySelector("[data-events]").dataset.run = run;
  document.querySelector("[data-runs]").prepend(part);
  return part.querySelector("[data-events]");
}

document.addEventListener("berth:event", ({ detail: event }) => {
  if (document.querySelector(`[data-events] [data-number="${event.id}"]`)) return;
  const item = blank.content.firstElementChild.cloneNode(true);
  item.dataset.number = event.id;
  item.classList.add(`level-${event.level}`);
  const use = item.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${event.level}`));
  item.querySelector("[data-message]").textContent = event.message;
  item.querySelector("[data-hint]").textContent = event.hint;
  const time = item.querySelector("time");
  time.dateTime = event.at;
  time.title = new Date(event.at).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
  listFor(event.run).prepend(item);
  document.querySelector("[data-no-events]")?.remove();
});
