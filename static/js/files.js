// Uploads into a volume: one after the other, in pieces, with progress. After a cut connection an upload asks how much
// is there and continues behind it; chosen once more after a reload, a file continues too.

const PIECE = 32 * 2 ** 20;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const PASSING = [0, 429, 502, 503, 504];

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let line = Promise.resolve(); // uploads run in it, one after the other
let underWay = 0;

class Refused extends Error {}

class Upload {
  constructor(place, file) {
    this.place = place;
    this.file = file;
    const template = place.querySelector("[data-upload]");
    this.words = template.dataset;
    this.row = template.content.firstElementChild.cloneNode(true);
    this.part("name").textContent = file.name;
    this.part("cancel-upload").addEventListener("click", () => this.stop());
    this.part("replace").addEventListener("click", () => this.begin());
    this.part("retry").addEventListener("click", () => this.begin());
    place.querySelector("[data-list]").append(this.row);
    const folder = place.dataset.folder;
    const path = folder ? `${folder}/${file.name}` : file.name;
    const upload = `${file.size}-${file.lastModified}`;
    this.address = `${place.dataset.uploads}?${new URLSearchParams({ path, upload })}`;
  }

  part(name) {
    return this.row.querySelector(`[data-${name}]`);
  }

  say(word, button) {
    this.part("word").textContent = word;
    for (const name of ["replace", "retry"]) this.part(name).hidden = name !== button;
  }

  show(sent) {
    const share = this.file.size ? (100 * sent) / this.file.size : 100;
    this.part("bar").value = share;
    this.say(`${Math.floor(share)} %`);
  }

  ask() {
    this.say(this.words.asks, "replace");
  }

  begin() {
    this.say(this.words.waits);
    underWay += 1;
    line = line.then(() => this.run()).finally(() => (underWay -= 1));
  }

  stop() {
    this.isStopped = true;
    this.sending?.abort();
    this.say(this.words.stopped);
    this.part("cancel-upload").hidden = true;
  }

  async run() {
    let wait = FIRST_PAUSE_MS;
    while (!this.isStopped) {
      try {
        await this.send(() => (wait = FIRST_PAUSE_MS));
        return this.end();
      } catch (error) {
        if (this.isStopped) return;
        if (error instanceof Refused) return this.say(error.message, "retry");
        this.say(this.words.away);
      }
      await pause(wait);
      wait = Math.min(2 * wait, LONGEST_PAUSE_MS);
    }
  }

  end() {
    this.show(this.file.size);
    this.say(this.words.done);
    this.part("cancel-upload").hidden = true;
    const select = "#listing";
    window.htmx?.ajax("GET", location.href, { target: select, select, swap: "outerHTML" });
  }

  // Send what is not there yet. `onProgress` is called for each piece that arrived.
  async send(onProgress) {
    const { size } = this.file;
    if (!size) return this.put(this.file, null, 0);
    let at = (await this.put(null, `bytes */${size}`, 0)).received;
    while (at < size) {
      const end = Math.min(at + PIECE, size);
      const answer = await this.put(this.file.slice(at, end), `bytes ${at}-${end - 1}/${size}`, at);
      at = answer.received;
      onProgress();
    }
    return at;
  }

  // One request. A passing fault rejects with an Error, a refusal that stays with Refused.
  put(body, range, at) {
    return new Promise((done, failed) => {
      const sending = new XMLHttpRequest();
      this.sending = sending;
      sending.open("PUT", this.address);
      sending.responseType = "json";
      sending.setRequestHeader("X-CSRFToken", this.place.querySelector("[name=csrfmiddlewaretoken]").value);
      sending.setRequestHeader("Content-Type", "application/octet-stream");
      if (range) sending.setRequestHeader("Content-Range", range);
      sending.upload.addEventListener("progress", (moved) => body && this.show(at + moved.loaded));
      sending.addEventListener("loadend", () => {
        const { status, response } = sending;
        const refused = response?.error;
        if (status >= 200 && status < 300) done(response);
        else if (PASSING.includes(status) || ["wrong_offset", "upload_busy"].includes(refused?.code)) failed(new Error());
        else failed(new Refused(refused ? `${refused.message} ${refused.hint}` : String(status)));
      });
      sending.send(body);
    });
  }
}

function add(place, files) {
  const there = new Set([...document.querySelectorAll("[data-entry]")].map((row) => row.dataset.entry));
  for (const file of files) {
    const upload = new Upload(place, file);
    if (there.has(file.name)) upload.ask();
    else upload.begin();
  }
}

document.addEventListener("change", (change) => {
  if (!change.target.matches("[data-choose]")) return;
  add(change.target.closest("[data-uploads]"), [...change.target.files]);
  change.target.value = "";
});

for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (drag) => {
    const place = document.querySelector("[data-uploads]");
    if (!place || !drag.dataTransfer?.types.includes("Files")) return;
    drag.preventDefault();
    if (kind === "drop") add(place, [...drag.dataTransfer.files]);
  });
}

window.addEventListener("beforeunload", (leaving) => {
  if (underWay) leaving.preventDefault();
});
