/**
 * What all charts share: SVG as text, so that a browser, a document and a diff can show it, with a background
 * of its own, in the reader's light or dark. Pure.
 */

/** Told from each other in print and by those who do not see red and green apart. */
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#999999'];

const STYLE = `
text { font: 11px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: bold } .head { font-weight: bold } .faint { fill: #59636e }
.back { fill: #ffffff } .rule { stroke: #d8dee4 } .mark { stroke: #1f2328 }
.limit { stroke: #cf222e; stroke-dasharray: 5 4 } .limit-text { fill: #cf222e }
${COLOURS.map((colour, at) => `.fill${at} { fill: ${colour} } .line${at} { fill: none; stroke: ${colour}; stroke-width: 2 }`).join('\n')}
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .faint { fill: #9198a1 } .back { fill: #0d1117 } .rule { stroke: #30363d }
  .mark { stroke: #e6edf3 } .limit { stroke: #ff7b72 } .limit-text { fill: #ff7b72 }
}`;

/** Classes are `fill0`, `line0` and so on; after the last one they begin again. */
export function colourAt(index: number): number {
  return index % COLOURS.length;
}

/** A whole picture with its title. */
export function picture(
  width: number,
  height: number,
  title: string,
  parts: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="back" width="${width}" height="${height}"/>`,
    label(8, 20, title, { cls: 'title' }),
    ...parts,
    '</svg>\n',
  ].join('\n');
}

export function label(
  x: number,
  y: number,
  text: string,
  { cls = '', anchor = 'start' }: { cls?: string; anchor?: 'start' | 'middle' | 'end' } = {},
): string {
  const named = cls === '' ? '' : ` class="${cls}"`;
  const placed = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${fixed(x)}" y="${fixed(y)}"${placed}${named}>${escapeXml(text)}</text>`;
}

export function line(x1: number, y1: number, x2: number, y2: number, cls: string): string {
  return `<line x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}" class="${cls}"/>`;
}

export function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Readable without superscripts: 0.01, 10, 1.5k, 1M. */
export function short(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (value >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

/** Round steps from zero to at least the greatest value. */
export function roundSteps(most: number): readonly number[] {
  if (!(most > 0)) return [0, 1];
  const raw = most / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((one) => one >= raw)!;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}
