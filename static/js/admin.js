// Pages of Django's admin: the focus on the first field with an error, and names for fields that Select2 draws.

const WRONG = ":is(.errors, td:has(> .errorlist)) :is(input, select, textarea):not([type=hidden])";

const drawn = (select) => select.nextElementSibling?.querySelectorAll("[role=combobox], [role=textbox]") ?? [];

function nameDrawnFields() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const name = select.ariaLabel ?? select.labels[0]?.textContent ?? "";
    for (const part of drawn(select)) part.ariaLabel = name;
  }
}

// Django draws its fields, and puts the focus on the first one, before the page is loaded.
addEventListener("load", () => {
  nameDrawnFields();
  const wrong = document.querySelector(WRONG);
  if (wrong) (drawn(wrong)[0] ?? wrong).focus();
});
document.addEventListener("formset:added", () => setTimeout(nameDrawnFields));
