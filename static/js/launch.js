// The launch form: one click takes a size that starts now, the verdict is said once it changes, the first wrong field
// has the focus, images are searched, and pressing the button twice sends once. (Twice sent is one launch all the same:
// the server knows the form's token.)

const form = document.querySelector("[data-launch]");
const answer = document.getElementById("answer");
const said = document.querySelector("[data-said]");

answer.addEventListener("click", (click) => {
  const link = click.target.closest("[data-fills]");
  if (!link) return;
  const fields = Object.entries(JSON.parse(link.dataset.fills)).map(([name, value]) => [field(name, value), value]);
  if (fields.some(([control]) => !control || control.disabled)) return; // then the link itself leads there
  click.preventDefault();
  for (const [control, value] of fields) {
    if (control.type === "radio") control.checked = true;
    else control.value = value;
  }
  const [first] = fields[0];
  first.focus();
  first.dispatchEvent(new Event("input", { bubbles: true }));
});

// The control of the form that takes this value, if there is one.
function field(name, value) {
  const escaped = CSS.escape(value);
  const choice = form.querySelector(`input[type="radio"][name="${name}"][value="${escaped}"]`);
  if (choice) return choice;
  const control = form.querySelector(`input[name="${name}"]:not([type="radio"]), select[name="${name}"]`);
  const isOffered = control?.tagName !== "SELECT" || [...control.options].some((option) => option.value === String(value));
  return isOffered ? control : null;
}

// The button's own line: on a phone it is what is seen of the answer.
function sayVerdict() {
  const verdict = answer.querySelector("[data-verdict]")?.textContent.trim() ?? "";
  if (said.textContent !== verdict) said.textContent = verdict;
  said.className = `small ${answer.querySelector(".answer")?.className ?? ""}`;
}

document.addEventListener("htmx:afterSettle", (settled) => {
  if (settled.target.id === "sizes") answer.dispatchEvent(new Event("taken"));
  sayVerdict();
  const isWrong = document.querySelector("#id_name_error .error") !== null;
  form.elements.namedItem("name").setAttribute("aria-invalid", String(isWrong));
});

sayVerdict();

// A refused form begins where the first fault is.
const wrong = form.querySelector(".error")?.closest(".field");
const controls = "input:not([type=hidden]):not(:disabled), select, textarea";
(wrong?.querySelector("input:checked") ?? wrong?.querySelector(controls))?.focus();

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

// Images are searched by all that is said of them. The chosen one stays in sight.
const search = form.querySelector("[data-filter]");
if (search) {
  const images = [...form.querySelectorAll("[data-images] .choice")];
  const none = form.querySelector("[data-none]");
  search.hidden = false;
  search.addEventListener("input", (typed) => {
    typed.stopPropagation(); // no value of the form: the answer stays
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const image of images) {
      const text = image.textContent.toLowerCase();
      image.hidden = !image.querySelector("input").checked && !words.every((word) => text.includes(word));
    }
    none.hidden = images.some((image) => !image.hidden && !image.querySelector("input").checked);
  });
  search.addEventListener("keydown", (press) => {
    if (press.key === "Enter") press.preventDefault();
  });
}
