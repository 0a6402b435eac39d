// Copy buttons: the text is that of the <pre> beside the button.

async function write(text, source) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Plain HTTP on a local network: select it and copy the selection.
  getSelection().selectAllChildren(source);
  document.execCommand("copy");
}

document.addEventListener("click", async (click) => {
  const button = click.target.closest("[data-copy]");
  if (!button) return;
  const source = button.parentElement.querySelector("pre");
  await write(source.textContent, source);
  const label = button.querySelector("span");
  button.dataset.label ??= label.textContent;
  label.textContent = button.dataset.done;
  setTimeout(() => (label.textContent = button.dataset.label), 2000);
});
