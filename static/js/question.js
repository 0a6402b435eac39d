// What loses something is asked about first: the question's own page, in a dialog. Without scripts the link leads there.

const dialog = document.getElementById("question-dialog");

document.addEventListener("htmx:afterSwap", (swap) => {
  if (swap.target === dialog && !dialog.open) dialog.showModal();
});

dialog.addEventListener("click", (click) => {
  if (!click.target.closest("[data-cancel]")) return;
  click.preventDefault();
  dialog.close();
});
