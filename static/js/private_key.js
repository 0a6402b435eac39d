// A private key that is pasted by mistake does not leave the browser: its field says so, and the form is not sent.
// Listened for on the whole page: the field may come with a part of it that is fetched later.

document.addEventListener("input", ({ target }) => {
  if (!target.matches("[data-no-private-key]")) return;
  const isPrivate = target.value.includes("PRIVATE KEY");
  target.setCustomValidity(isPrivate ? target.dataset.noPrivateKey : "");
  if (isPrivate) target.reportValidity();
});
