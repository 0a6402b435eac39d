// What loses something is asked about first: the question's own page, in a dialog. Without scripts the link leads there.

const dialog = document.getElementById("question-dialog");

let asker; // its id: the page may be fetched anew while the question is open

document.addEventListener("htmx:afterSwap", (swap) => {
  if (swap.target !== dialog || dialog.open) return;
  asker = swap.detail.requestConfig.elt.id;
  dialog.showModal();
});

// An item of a menu is hidden by now: its menu takes the focus.
dialog.addEventListener("close", () => {
  const part = document.getElementById(asker);
  (part?.closest("details.menu")?.querySelector("summary") ?? part)?.focus();
});

dialog.addEventListener("click", (click) => {
  if (!click.target.closest("[data-cancel]")) return;
  click.preventDefault();
  dialog.close();
});
