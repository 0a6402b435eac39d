// Opens the page that could not be shown, as soon as Berth says that it is ready.

const PAUSE_MS = 3000;

async function look() {
  const answer = await fetch("/readyz/web", { cache: "no-store" }).catch(() => undefined);
  if (answer?.ok) location.reload();
  else setTimeout(look, PAUSE_MS);
}

setTimeout(look, PAUSE_MS);
