// Panels of figures. A page that names a websocket (data-metrics="/ws/…/") hears them from there, as a whole at first
// and then from the moment on that was told last; another has them in itself, in #figures.

import { Chart, said } from "./charts.js";
import { connect } from "./socket.js";

const page = document.querySelector("[data-metrics]");
const message = page.querySelector("[data-message]");
const simulated = page.querySelector("[data-simulated]");
const blank = document.getElementById("panel-row");
const lines = new Map(); // by name and label

class Panel {
  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.panel;
    this.unit = figure.dataset.unit;
    const place = figure.querySelector("[data-plot]");
    const limit = Number(figure.dataset.limit) || undefined;
    if (place) this.chart = new Chart(place, { unit: this.unit, limit, moment: figure.querySelector("[data-moment]") });
  }

  show(range) {
    const own = [...lines.values()].filter((line) => line.name === this.name);
    this.chart?.show(own, range);
    this.figure.querySelector("[data-nothing]").hidden = own.length > 0;
    const body = this.figure.querySelector("[data-rows]");
    while (body.rows.length > own.length) body.rows[body.rows.length - 1].remove();
    own.forEach((line, at) => this.fill(body.rows[at] ?? this.addRow(body, at), line));
  }

  addRow(body, at) {
    body.append(blank.content.cloneNode(true));
    const row = body.rows[at];
    row.querySelector(".swatch").classList.replace("is-1", `is-${(at % 8) + 1}`);
    return row;
  }

  fill(row, line) {
    const told = line.points.map(([, value]) => value).filter((value) => value !== null);
    const mean = told.length ? told.reduce((sum, value) => sum + value, 0) / told.length : null;
    const words = { latest: told.at(-1), mean, peak: told.length ? Math.max(...told) : null };
    set(row.querySelector("[data-label]"), line.label);
    for (const [name, value] of Object.entries(words)) set(row.querySelector(`[data-${name}]`), said(value, this.unit));
  }
}

function set(part, text) {
  if (part.textContent !== text) part.textContent = text;
}

function take({ series, since, step_seconds: step }) {
  if (since === null) lines.clear();
  let until = 0;
  const told = new Set();
  for (const { name, label, points } of series) {
    const key = `${name}|${label}`;
    const before = (lines.get(key)?.points ?? []).filter(([at]) => at < since);
    lines.set(key, { name, label: label || page.dataset.whole, points: [...before, ...points] });
    told.add(key);
    until = Math.max(until, points.at(-1)?.[0] ?? 0);
  }
  for (const key of lines.keys()) if (!told.has(key)) lines.delete(key);
  return until + step;
}

const panels = [...page.querySelectorAll("[data-panel]")].map((figure) => new Panel(figure));
const given = document.getElementById("figures");
let length; // of the window, as the first frame has it

function show(frame) {
  const until = take(frame);
  if (frame.since === null) length = until - Math.min(...[...lines.values()].map((line) => line.points[0]?.[0] ?? until));
  const from = until - length;
  for (const line of lines.values()) line.points = line.points.filter(([at]) => at >= from);
  for (const panel of panels) panel.show([from, until]);
}

if (given) {
  const { times, series, ...figures } = JSON.parse(given.textContent);
  const whole = series.map(({ values, ...line }) => ({ ...line, points: values.map((value, at) => [times[at], value]) }));
  show({ since: null, series: whole, ...figures });
} else {
  connect(() => page.dataset.metrics, {
    onMessage(frame) {
      if (frame.type !== "figures") return;
      set(message, frame.message);
      simulated.hidden = !frame.is_simulated;
      show(frame);
    },
  });
}
