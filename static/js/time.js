// Lets times tick each second: [data-since], [data-ago], and [data-until] down to nothing. Says them as templatetags/berth.py does.

// The server tells exact times where this browser is, unless the person chose another place in their profile.
const place = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
if (!document.cookie.split("; ").includes(`berth_time_zone=${place}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `berth_time_zone=${place}; path=/; max-age=31536000; samesite=lax${secure}`;
}

const LENGTHS = [86400, 3600, 60, 1];
const WORDS = document.body.dataset.spans.split("|"); // in the reader's language: "%s d"

function span(seconds) {
  const unit = LENGTHS.findIndex((length) => seconds >= length);
  return WORDS.at(unit).replace("%s", Math.floor(seconds / LENGTHS.at(unit))); // 0 is less than all: in the last, seconds
}

// From an hour on in two units, so that half an hour more is seen to be more.
function left(seconds) {
  const [length, next] = seconds >= 86400 ? [86400, 3600] : [3600, 60];
  const rest = seconds % length;
  return seconds >= length && rest >= next ? `${span(seconds)}\u00a0${span(rest)}` : span(seconds);
}

function tick() {
  for (const time of document.querySelectorAll("time[data-since], time[data-ago], time[data-until]")) {
    const passed = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
    const seconds = Math.max(0, "until" in time.dataset ? -passed : passed);
    let words = "until" in time.dataset ? left(seconds) : span(seconds);
    if ("ago" in time.dataset) {
      if (seconds < 10) continue; // "just now", in the reader's language, as the server wrote it
      words = document.body.dataset.ago.replace("%s", words);
    }
    if (time.textContent !== words) time.textContent = words;
  }
}

setInterval(tick, 1000);
