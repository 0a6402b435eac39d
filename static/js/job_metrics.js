// Charts of the values that a job reported, one for each name: their points stand in #job-series. The page fetches
// itself anew when the job changes, so charts are drawn again then.

import { Chart } from "./charts.js";

function draw() {
  const given = document.getElementById("job-series");
  if (!given) return;
  const series = JSON.parse(given.textContent);
  for (const figure of document.querySelectorAll("[data-series]:not([data-drawn])")) {
    const points = (series[figure.dataset.series] ?? []).map(({ at, value }) => [Date.parse(at) / 1000, value]);
    if (!points.length) continue;
    figure.dataset.drawn = "";
    const chart = new Chart(figure.querySelector("[data-plot]"), { unit: "", moment: figure.querySelector("[data-moment]") });
    const [from, to] = [points[0][0], points.at(-1)[0]];
    chart.show([{ label: figure.dataset.series, points }], [from, Math.max(to, from + 1)]);
  }
}

draw();
document.body.addEventListener("htmx:afterSettle", draw);
