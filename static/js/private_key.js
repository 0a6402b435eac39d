// A private key that is pasted by mistake does not leave the browser: its field says so, and the form is not sent.

for (const field of document.querySelectorAll("[data-no-private-key]")) {
  field.addEventListener("input", () => {
    const isPrivate = field.value.includes("PRIVATE KEY");
    field.setCustomValidity(isPrivate ? field.dataset.noPrivateKey : "");
    if (isPrivate) field.reportValidity();
  });
}
