/** Lines over a number: one small panel for each quantity, with axes that are logarithmic or linear. Pure. */

import { colourAt, fixed, label, line, picture, roundSteps, short } from './svg.js';

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

/** Of both axes. Linear ones begin at zero. */
export type Axes = 'logarithmic' | 'linear';

const PANEL = { width: 400, height: 250, left: 52, right: 14, top: 30, bottom: 36 } as const;
const PER_ROW = 2;
const HEAD = 34;

/** @param xName what the numbers below the panels are */
export function renderPanels(
  title: string,
  panels: readonly Panel[],
  axes: Axes,
  xName: string,
): string {
  const width = PER_ROW * PANEL.width;
  const height = HEAD + Math.ceil(panels.length / PER_ROW) * PANEL.height;
  const parts = panels.map((panel, at) => {
    const x = (at % PER_ROW) * PANEL.width;
    const y = HEAD + Math.floor(at / PER_ROW) * PANEL.height;
    return `<g transform="translate(${x} ${y})">\n${renderPanel(panel, axes, xName)}\n</g>`;
  });
  return picture(width, height, title, parts);
}

function renderPanel({ title, series, target }: Panel, axes: Axes, xName: string): string {
  const isLog = axes === 'logarithmic';
  const shown = series.map(({ name, points }) => ({
    name,
    points: isLog ? points.filter(([x, y]) => x > 0 && y > 0) : points,
  }));
  const all = shown.flatMap(({ points }) => points);
  const ticks = isLog ? decades : (values: readonly number[]) => roundSteps(Math.max(0, ...values));
  const xs = ticks(all.map(([x]) => x));
  const ys = ticks([...all.map(([, y]) => y), ...(target === undefined ? [] : [target])]);
  const { left, top } = PANEL;
  const right = PANEL.width - PANEL.right;
  const bottom = PANEL.height - PANEL.bottom;
  const along = isLog ? Math.log10 : (value: number) => value;
  const xOf = scale(xs, along, left, right);
  const yOf = scale(ys, along, bottom, top);
  const parts = [label(left, 18, title, { cls: 'head' })];
  for (const x of xs) {
    parts.push(line(xOf(x), top, xOf(x), bottom, 'rule'));
    parts.push(label(xOf(x), bottom + 14, short(x), { anchor: 'middle' }));
  }
  parts.push(label(right, bottom + 29, xName, { anchor: 'end', cls: 'faint' }));
  for (const y of ys) {
    parts.push(line(left, yOf(y), right, yOf(y), 'rule'));
    parts.push(label(left - 5, yOf(y) + 4, short(y), { anchor: 'end' }));
  }
  if (target !== undefined) {
    const at = yOf(target);
    parts.push(line(left, at, right, at, 'limit'));
    parts.push(
      label(right, at - 3, `target ${short(target)}`, { anchor: 'end', cls: 'limit-text' }),
    );
  }
  for (const [at, { name, points }] of shown.entries()) {
    const colour = colourAt(at);
    const places = points.map(([x, y]) => `${fixed(xOf(x))},${fixed(yOf(y))}`);
    parts.push(`<polyline points="${places.join(' ')}" class="line${colour}"/>`);
    for (const place of places) {
      const [cx, cy] = place.split(',');
      parts.push(`<circle cx="${cx}" cy="${cy}" r="2.5" class="fill${colour}"/>`);
    }
    const y = top + 13 + 13 * at;
    parts.push(`<rect x="${left + 6}" y="${y - 8}" width="9" height="9" class="fill${colour}"/>`);
    parts.push(label(left + 19, y, name));
  }
  return parts.join('\n');
}

/** The powers of ten from the one below the least value to the one above the greatest, two at least. */
function decades(values: readonly number[]): readonly number[] {
  if (values.length === 0) return [1, 10];
  const first = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
}

function scale(
  ticks: readonly number[],
  along: (value: number) => number,
  from: number,
  to: number,
): (value: number) => number {
  const least = along(ticks[0]!);
  const span = along(ticks.at(-1)!) - least;
  return (value) => from + ((along(value) - least) / span) * (to - from);
}
