// A websocket that comes back: back-off with jitter, a watchdog for silent ones, and a thin bar while it is away.

const FIRST_DELAY_MS = 400;
const LONGEST_DELAY_MS = 15_000;
const SILENCE_MS = 45_000; // the server pings every 20 s
const BAR_AFTER_MS = 900; // a short blink is not worth a word

const NOT_SIGNED_IN = 4401;
const NOT_THERE = 4404;
const TOO_MANY = 4429;
const TOO_MANY_DELAY_MS = 30_000;

const away = new Set();
const refused = new Set(); // the person has too many open
const reload = () => location.reload(); // the server says what became of it

function show(bar, sockets, socket, isOne) {
  if (isOne) sockets.add(socket);
  else sockets.delete(socket);
  document.querySelector(bar).hidden = sockets.size === 0;
}

const showAway = (socket, isAway) => show("[data-reconnecting]", away, socket, isAway);
const showRefused = (socket, isRefused) => show("[data-too-many]", refused, socket, isRefused);

// `path` is a function: it is asked anew at each connection, so that it can say where to go on (?after=N).
// A quiet one is not what the page shows: while it is away nothing on it is out of date.
export function connect(path, { onMessage, onOpen = () => {}, onRefused = reload, isQuiet = false }) {
  const self = {};
  let delay = FIRST_DELAY_MS;
  let socket, retry, watchdog, bar;
  let leaving = false;

  function heard() {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => socket.close(), SILENCE_MS);
  }

  function open() {
    clearTimeout(retry);
    const origin = location.origin.replace(/^http/, "ws");
    socket = new WebSocket(origin + path());
    socket.onopen = () => {
      delay = FIRST_DELAY_MS;
      clearTimeout(bar);
      bar = undefined;
      showAway(self, false);
      heard();
      onOpen();
    };
    socket.onmessage = (frame) => {
      heard();
      const message = JSON.parse(frame.data);
      if (message.type !== "note") showRefused(self, false);
      if (message.type !== "ping") onMessage(message);
    };
    socket.onclose = closed;
  }

  function closed({ code }) {
    clearTimeout(watchdog);
    if (leaving) return;
    if (code === NOT_SIGNED_IN || code === NOT_THERE) {
      leaving = true;
      onRefused();
      return;
    }
    if (code === TOO_MANY) {
      showRefused(self, true);
      retry = setTimeout(open, TOO_MANY_DELAY_MS);
      return;
    }
    if (!isQuiet) bar ??= setTimeout(() => showAway(self, true), BAR_AFTER_MS);
    retry = setTimeout(open, delay * (0.5 + Math.random()));
    delay = Math.min(delay * 2, LONGEST_DELAY_MS);
  }

  function hurry() {
    if (socket.readyState !== WebSocket.CLOSED || leaving) return;
    delay = FIRST_DELAY_MS;
    open();
  }

  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && hurry());
  addEventListener("pagehide", () => {
    leaving = true;
    socket.close();
  });
  addEventListener("pageshow", (show) => {
    if (!show.persisted) return;
    leaving = false;
    open();
  });
  open();
}
