// Notices as they come: the number of unread ones in the frame, a toast where somebody looks, and a notification of
// the browser where nobody does.
//
// One tab of a browser has the websocket and tells the others; a lock decides which, and the next tab takes over when
// it closes. So nothing is shown twice, and a tab in the background is enough.

import { connect } from "./socket.js";

const SEEN = "berth_notices_seen";
const NOT_NOW = "berth_notices_not_now";
const MOST_REMEMBERED = 100;
const ANSWER_MS = 250;

const badge = document.querySelector("[data-unread]");
const tabs = new BroadcastChannel("berth-notices");
const pageOf = (notice) => `/notices/${notice.id}/`;

// --- What a tab shows

function showUnread(unread) {
  badge.textContent = unread > 99 ? "99+" : unread;
  badge.hidden = unread === 0;
}

// One for all: where several come at once, their number stands in it.
function showToast(notice) {
  const toasts = document.querySelector("[data-toasts]");
  const before = toasts.querySelector("[data-notices]");
  const blank = document.getElementById("toast");
  const toast = blank.content.firstElementChild.cloneNode(true);
  const link = document.createElement("a");
  const count = 1 + Number(before?.dataset.notices ?? 0);
  if (count === 1) {
    link.href = pageOf(notice);
    link.textContent = notice.title;
    toast.classList.replace("toast-info", notice.kind === "ready" ? "toast-success" : "toast-warning");
  } else {
    link.href = "/notices/";
    link.textContent = blank.dataset.many.replace("%s", count);
  }
  toast.dataset.notices = count;
  toast.querySelector("[data-text]").replaceChildren(link);
  if (before) before.replaceWith(toast);
  else toasts.append(toast);
}

function showHere(notice) {
  if (document.visibilityState !== "visible") return;
  if (location.pathname === notice.path) fetch(pageOf(notice), { redirect: "manual" }); // seen on its own page: read
  else if (!document.querySelector(`a[href="${pageOf(notice)}"]`)) showToast(notice);
}

// --- What the tab with the websocket does

function isNew(notice) {
  const seen = JSON.parse(localStorage.getItem(SEEN) || "[]");
  if (seen.includes(notice.id)) return false;
  localStorage.setItem(SEEN, JSON.stringify([...seen, notice.id].slice(-MOST_REMEMBERED)));
  return true;
}

function someTabHasFocus() {
  if (document.hasFocus()) return true;
  return new Promise((resolve) => {
    const hear = ({ data }) => data.type === "focused" && resolve(true);
    tabs.addEventListener("message", hear);
    tabs.postMessage({ type: "who has focus" });
    setTimeout(() => {
      tabs.removeEventListener("message", hear);
      resolve(false);
    }, ANSWER_MS);
  });
}

function call(title, text, { id, path } = {}) {
  const icon = document.querySelector("link[rel=icon]").href;
  const notification = new Notification(title, { body: text, tag: id, icon, lang: document.documentElement.lang });
  notification.onclick = (click) => {
    click.preventDefault();
    notification.close();
    window.focus();
    if (id && (location.pathname === path || !window.open(pageOf({ id })))) location.assign(pageOf({ id }));
  };
}

async function onNotice(notice) {
  if (!isNew(notice)) return;
  tabs.postMessage({ type: "notice", notice });
  showHere(notice);
  if (permission() === "granted" && !(await someTabHasFocus())) call(notice.title, notice.text, notice);
}

function onMessage(message) {
  if (message.type === "notice") onNotice(message.notice);
  if (message.type === "unread") {
    tabs.postMessage(message);
    showUnread(message.unread);
  }
}

// Until the tab closes, or its person has signed out: then a tab of whoever is signed in now takes over.
const listen = () =>
  new Promise((ends) => connect(() => "/ws/notices/", { onMessage, onRefused: ends, isQuiet: true }));

// --- What the other tabs do

tabs.addEventListener("message", ({ data }) => {
  if (data.type === "notice") showHere(data.notice);
  if (data.type === "unread" && badge) showUnread(data.unread);
  if (data.type === "who has focus" && document.hasFocus()) tabs.postMessage({ type: "focused" });
});

// --- May the browser notify? Asked only when somebody presses a button

const permission = () => ("Notification" in window && isSecureContext ? Notification.permission : "unsupported");

function showPermission() {
  for (const part of document.querySelectorAll("[data-browser-notices] [data-permission]")) {
    const isOffer = part.querySelector("[data-no-notices]");
    part.hidden = part.dataset.permission !== permission() || Boolean(isOffer && localStorage.getItem(NOT_NOW));
  }
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-allow-notices], [data-no-notices], [data-try-notice]");
  if (!button) return;
  if ("allowNotices" in button.dataset) await Notification.requestPermission();
  if ("noNotices" in button.dataset) localStorage.setItem(NOT_NOW, "1");
  if ("tryNotice" in button.dataset) call(button.dataset.title, button.dataset.text);
  showPermission();
});
document.addEventListener("htmx:afterSettle", showPermission);
showPermission();

// Browsers have locks where they have notifications: by HTTPS or on this machine. Elsewhere each tab listens for itself.
if (badge) navigator.locks ? navigator.locks.request("berth-notices", listen) : listen();
