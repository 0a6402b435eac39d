// What every page has: menus, theme, dialogs, toasts. Everything here also works, less smoothly, without it.

const root = document.documentElement;

// --- Menus: one at a time, closed by Escape and by a press elsewhere

const openMenus = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", (click) => {
  for (const menu of openMenus()) if (!menu.contains(click.target)) menu.open = false;
});

document.addEventListener("keydown", (press) => {
  if (press.key !== "Escape") return;
  for (const menu of openMenus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

document.addEventListener("focusin", ({ target }) => {
  for (const menu of openMenus()) if (!menu.contains(target)) menu.open = false;
});

// --- Theme: seen at once, and kept by the server with the person

document.addEventListener("submit", (submit) => {
  const form = submit.target;
  if (!("themeSwitch" in form.dataset)) return;
  submit.preventDefault();
  const chosen = submit.submitter;
  if (chosen.value) root.dataset.theme = chosen.value;
  else delete root.dataset.theme;
  for (const button of form.querySelectorAll("button")) button.ariaPressed = String(button === chosen);
  fetch(form.action, { method: "POST", body: new FormData(form, chosen), redirect: "manual" });
});

// --- Dialogs and toasts

document.addEventListener("click", (click) => {
  const target = click.target.closest("[data-dismiss], [data-dialog], [data-close]");
  if (!target) return;
  if ("dismiss" in target.dataset) target.closest(".toast").remove();
  if ("close" in target.dataset) {
    click.preventDefault();
    target.closest("dialog").close();
  }
  const dialog = target.dataset.dialog && document.getElementById(target.dataset.dialog);
  if (dialog) {
    click.preventDefault(); // the link leads to the same question on a page of its own
    dialog.showModal();
  }
});

// --- One box for all boxes of a form

document.addEventListener("change", ({ target }) => {
  if (!("chooseAll" in target.dataset)) return;
  for (const box of target.form.elements) if (box.name === "chosen") box.checked = target.checked;
});

// A fragment that comes anew keeps what the reader had unfolded.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", (swap) => {
  unfolded = [...swap.detail.target.querySelectorAll("details[open][id]")].map((part) => part.id);
});
document.addEventListener("htmx:afterSettle", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});

// What the rail marks as the current page is in sight, however long the list is.
document.querySelector(".rail nav [aria-current]")?.scrollIntoView({ block: "nearest" });
