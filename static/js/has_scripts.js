// Before the first paint, and so no module: what only works with scripts takes its room at once.

document.documentElement.classList.add("has-scripts");
