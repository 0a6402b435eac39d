// Draws figures over time with uPlot, in the page's colours: lines [{label, points: [[seconds, value or null], …]}].
// What is null is a gap. A limit is a line of its own; the arrow keys move the cursor, and `said` hears what is there.

const STROKES = [[], [7, 3], [2, 2], [9, 2, 2, 2]];
const HEIGHT = 180;
// Steps of an axis of memory: 1, 2, 4 … MiB, GiB, TiB.
const WHOLE_MIB = Array.from({ length: 32 }, (_one, power) => 2 ** power);
const language = document.documentElement.lang;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// As monitoring/panels.py says it.
export function said(value, unit) {
  if (value === null || value === undefined) return "–";
  const round = (digits) => value.toLocaleString(language, { maximumFractionDigits: digits });
  if (unit === "") return value.toLocaleString(language, { maximumSignificantDigits: 5 });
  if (unit === "%") return `${round(0)}%`;
  if (unit === "cores") return round(2);
  if (unit !== "MiB") return `${round(0)}\u00a0${unit}`;
  const [amount, name] = value < 1024 ? [value, "MiB"] : value < 1048576 ? [value / 1024, "GiB"] : [value / 1048576, "TiB"];
  return `${amount.toLocaleString(language, { maximumFractionDigits: 1 })}\u00a0${name}`;
}

// Figures between two gaps: they are no line, and would not be seen.
function lonely(values) {
  const isGap = (at) => (values[at] ?? null) === null;
  const found = [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
  return found.length ? found : null;
}

export class Chart {
  constructor(place, { unit, limit, moment }) {
    Object.assign(this, { place, unit, limit, moment, lines: [], range: undefined });
    new ResizeObserver(() => this.plot?.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
    const again = () => this.draw();
    new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    place.addEventListener("keydown", (press) => this.step(press));
  }

  // `range`: from when to when, in seconds.
  show(lines, range) {
    const isSame = this.plot && lines.length === this.lines.length && lines.every((line, at) => line.label === this.lines[at].label);
    this.lines = lines;
    this.range = range;
    if (isSame) this.plot.setData(this.columns());
    else this.draw();
  }

  // All lines of one answer have the same times.
  columns() {
    const times = [...new Set(this.lines.flatMap((line) => line.points.map(([at]) => at)))].sort((a, b) => a - b);
    const columns = this.lines.map((line) => {
      const values = new Map(line.points);
      return times.map((at) => values.get(at) ?? null);
    });
    const limit = this.limit ? [times.map(() => this.limit)] : [];
    return [times, ...columns, ...limit];
  }

  draw() {
    this.plot?.destroy();
    this.plot = undefined;
    if (!this.lines.length) return;
    const grid = { stroke: color("--line"), width: 1 };
    const axis = { stroke: color("--muted"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    this.plot = new uPlot(
      {
        width: this.place.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { setScale: false, x: false }, sync: { key: "figures" } },
        scales: { x: { range: () => this.range }, y: this.unit === "" ? {} : { range: (_plot, _least, most) => [0, this.top(most)] } },
        axes: [
          { ...axis, size: 30, values: (_plot, times) => this.clock(times) },
          { ...axis, size: 64, incrs: this.unit === "MiB" ? WHOLE_MIB : undefined, values: (_plot, values) => values.map((value) => said(value, this.unit)) },
        ],
        series: [{}, ...this.lines.map((_line, at) => this.stroke(at)), ...(this.limit ? [this.limitStroke()] : [])],
        hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
      },
      this.columns(),
      this.place,
    );
  }

  stroke(at) {
    const own = color(`--chart-${(at % 8) + 1}`);
    const points = { show: false, size: 3, fill: own, filter: (plot, number) => lonely(plot.data[number]) };
    return { stroke: own, width: 1.75, dash: STROKES[at % STROKES.length], points };
  }

  limitStroke() {
    return { stroke: color("--bad"), width: 1, dash: [4, 4], points: { show: false } };
  }

  top(most) {
    if (this.unit === "%") return 100;
    return Math.max(most ?? 0, this.limit ?? 0, 1e-9) * 1.06;
  }

  clock(times) {
    const [from, to] = this.range;
    const shape = to - from > 172800 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    return times.map((at) => new Date(at * 1000).toLocaleString(language, shape));
  }

  step(press) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[press.key];
    if (!by || !this.plot) return;
    press.preventDefault();
    const [times, ...columns] = this.plot.data;
    const newest = Math.max(...this.lines.map((_line, at) => columns[at].findLastIndex((value) => value !== null)));
    const at = this.plot.cursor.idx === null ? newest : this.plot.cursor.idx + by;
    this.plot.setCursor({ left: this.plot.valToPos(times[Math.min(newest, Math.max(0, at))], "x"), top: 0 });
  }

  tell(at) {
    const time = this.plot?.data[0][at];
    if (time === undefined) {
      this.moment.textContent = "";
      return;
    }
    const when = new Date(time * 1000).toLocaleTimeString(language, { hourCycle: "h23" });
    const words = this.lines.map((line, number) => `${line.label} ${said(this.plot.data[number + 1][at], this.unit)}`);
    this.moment.textContent = [when, ...words].join(" · ");
  }
}
