/**
 * Growth as a picture: one small panel for each quantity, lines over a number of instances, both axes
 * logarithmic. SVG as text, so that a browser, a document and a diff can show it. Pure.
 */

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
  /** What is to be reached: a dashed line. */
  readonly target?: number;
}

const PANEL = { width: 360, height: 250, left: 52, right: 14, top: 34, bottom: 34 } as const;
const PER_ROW = 2;
const HEAD = 34;
/** Told from each other in print and by those who do not see red and green apart. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7'] as const;

export function renderPanels(title: string, panels: readonly Panel[]): string {
  const width = PER_ROW * PANEL.width;
  const height = HEAD + Math.ceil(panels.length / PER_ROW) * PANEL.height;
  const parts = panels.map((panel, at) => {
    const x = (at % PER_ROW) * PANEL.width;
    const y = HEAD + Math.floor(at / PER_ROW) * PANEL.height;
    return `<g transform="translate(${x} ${y})">\n${renderPanel(panel)}\n</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ` +
      `width="${width}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    label(width / 2, 22, title, 'middle', ' font-size="14" font-weight="bold"'),
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function renderPanel({ title, series, target }: Panel): string {
  const shown = series.map(({ name, points }) => ({
    name,
    points: points.filter(([x, y]) => x > 0 && y > 0),
  }));
  const all = shown.flatMap(({ points }) => points);
  const xs = decades(all.map(([x]) => x));
  const ys = decades([...all.map(([, y]) => y), ...(target === undefined ? [] : [target])]);
  const { left, top } = PANEL;
  const right = PANEL.width - PANEL.right;
  const bottom = PANEL.height - PANEL.bottom;
  const xOf = scale(xs, left, right);
  const yOf = scale(ys, bottom, top);
  const lines = [label(left, 16, title, 'start', ' font-weight="bold"')];
  for (const x of xs) {
    lines.push(rule(xOf(x), top, xOf(x), bottom));
    lines.push(label(xOf(x), bottom + 14, power(x), 'middle'));
  }
  for (const y of ys) {
    lines.push(rule(left, yOf(y), right, yOf(y)));
    lines.push(label(left - 5, yOf(y) + 4, power(y), 'end'));
  }
  if (target !== undefined) {
    const at = yOf(target);
    lines.push(rule(left, at, right, at, ' stroke="#c00" stroke-dasharray="5 4"'));
    lines.push(label(right, at - 3, `target ${target}`, 'end', ' fill="#c00"'));
  }
  for (const [at, { name, points }] of shown.entries()) {
    const colour = COLOURS[at % COLOURS.length];
    const places = points.map(([x, y]) => `${fixed(xOf(x))},${fixed(yOf(y))}`);
    lines.push(
      `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    );
    for (const place of places) {
      const [cx, cy] = place.split(',');
      lines.push(`<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`);
    }
    lines.push(label(left + 6, top + 13 + 13 * at, name, 'start', ` fill="${colour}"`));
  }
  return lines.join('\n');
}

/** The powers of ten from the one below the least value to the one above the greatest, two at least. */
function decades(values: readonly number[]): readonly number[] {
  if (values.length === 0) return [1, 10];
  const first = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
}

function scale(ticks: readonly number[], from: number, to: number): (value: number) => number {
  const least = Math.log10(ticks[0]!);
  const span = Math.log10(ticks.at(-1)!) - least;
  return (value) => from + ((Math.log10(value) - least) / span) * (to - from);
}

/** Readable without superscripts: 0.01, 10, 10k, 1M. */
function power(value: number): string {
  if (value >= 1e6) return `${Math.round(value / 1e6)}M`;
  if (value >= 1e3) return `${Math.round(value / 1e3)}k`;
  return String(Number(value.toPrecision(1)));
}

function rule(x1: number, y1: number, x2: number, y2: number, more = ' stroke="#ddd"'): string {
  return `<line x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}"${more}/>`;
}

function label(x: number, y: number, text: string, anchor: string, more = ''): string {
  const safe = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}"${more}>${safe}</text>`;
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}
