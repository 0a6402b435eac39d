// Lets times tick each second: [data-since], [data-ago], and [data-until] down to nothing. Says them as templatetags/berth.py does.

// The server tells exact times where this browser is, unless the person chose another place in their profile.
const place = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
if (!document.cookie.split("; ").includes(`berth_time_zone=${place}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `berth_time_zone=${place}; path=/; max-age=31536000; samesite=lax${secure}`;
}

const NBSP = "\u00a0";
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
];

function span(seconds) {
  for (const [length, unit] of UNITS) {
    if (seconds >= length) return `${Math.floor(seconds / length)}${NBSP}${unit}`;
  }
  return `${seconds}${NBSP}s`;
}

function tick() {
  for (const time of document.querySelectorAll("time[data-since], time[data-ago], time[data-until]")) {
    const passed = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
    const seconds = Math.max(0, "until" in time.dataset ? -passed : passed);
    let words = span(seconds);
    if ("ago" in time.dataset) {
      if (seconds < 10) continue; // "just now", in the reader's language, as the server wrote it
      words = document.body.dataset.ago.replace("%s", words);
    }
    if (time.textContent !== words) time.textContent = words;
  }
}

setInterval(tick, 1000);
