// The launch form: one click takes a size that starts now, the verdict is said once it changes, and pressing the
// button twice sends once. (Twice sent is one launch all the same: the server knows the form's token.)

const form = document.querySelector("[data-launch]");
const answer = document.getElementById("answer");
const said = document.querySelector("[data-said]");

answer.addEventListener("click", (click) => {
  const link = click.target.closest("[data-take]");
  const size = link && form.querySelector(`input[name="flavor"][value="${CSS.escape(link.dataset.take)}"]`);
  if (!size || size.disabled) return; // then the link itself leads there
  click.preventDefault();
  size.checked = true;
  size.focus();
  size.dispatchEvent(new Event("input", { bubbles: true }));
});

document.addEventListener("htmx:afterSettle", (settled) => {
  if (settled.target.id === "sizes") answer.dispatchEvent(new Event("taken"));
  const verdict = answer.querySelector("[data-verdict]")?.textContent.trim() ?? "";
  if (said.textContent !== verdict) said.textContent = verdict;
});

form.addEventListener("submit", (submit) => {
  if (form.dataset.sent) {
    submit.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  const label = submit.submitter?.querySelector("span");
  if (!label) return;
  label.dataset.label = label.textContent;
  label.textContent = form.dataset.busy;
});

// Back from the next page: the form may be sent again.
addEventListener("pageshow", () => {
  delete form.dataset.sent;
  for (const label of form.querySelectorAll("button [data-label]")) label.textContent = label.dataset.label;
});
