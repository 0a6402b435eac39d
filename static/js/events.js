// Puts new events on top of the list of activity, without fetching it again.

const list = document.querySelector("[data-events]");
const blank = document.getElementById("event");

document.addEventListener("berth:event", ({ detail: event }) => {
  if (list.querySelector(`[data-number="${event.id}"]`)) return;
  const item = blank.content.firstElementChild.cloneNode(true);
  item.dataset.number = event.id;
  item.classList.add(`level-${event.level}`);
  const use = item.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${event.level}`));
  item.querySelector("[data-message]").textContent = event.message;
  item.querySelector("[data-hint]").textContent = event.hint;
  const time = item.querySelector("time");
  time.dateTime = event.at;
  time.title = new Date(event.at).toLocaleString();
  list.prepend(item);
  document.querySelector("[data-no-events]")?.remove();
});
