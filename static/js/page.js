// What every page has: theme switch, dialogs, toasts. Everything here also works, less smoothly, without it.

const root = document.documentElement;
root.classList.add("has-scripts");

const systemTheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function switchTheme() {
  const theme = (root.dataset.theme || systemTheme()) === "dark" ? "light" : "dark";
  root.dataset.theme = theme;
  // A cookie, not localStorage: the server then renders the right theme at once.
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `berth_theme=${theme}; path=/; max-age=31536000; samesite=lax${secure}`;
}


document.addEventListener("click", (click) => {
  const target = click.target.closest("[data-theme-switch], [data-dismiss], [data-dialog], [data-close]");
  if (!target) return;
  if ("themeSwitch" in target.dataset) switchTheme();
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

// A fragment that comes anew keeps what the reader had unfolded.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", (swap) => {
  unfolded = [...swap.detail.target.querySelectorAll("details[open][id]")].map((part) => part.id);
});
document.addEventListener("htmx:afterSettle", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});
