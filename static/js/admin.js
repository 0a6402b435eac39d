// Pages of Django's admin: the focus on the first field with an error, and names for fields that Select2 draws.

document.querySelector(":is(.errors, td:has(> .errorlist)) :is(input, select, textarea):not([type=hidden])")?.focus();

function nameDrawnFields() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const name = select.ariaLabel ?? select.labels[0]?.textContent ?? "";
    const drawn = select.nextElementSibling?.querySelectorAll("[role=combobox], [role=textbox]") ?? [];
    for (const part of drawn) part.ariaLabel = name;
  }
}

addEventListener("load", nameDrawnFields); // Django draws them before
document.addEventListener("formset:added", () => setTimeout(nameDrawnFields));
