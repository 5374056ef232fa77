/** Log lines for people. Only the palette can move the cursor or colour the terminal. */

interface Line {
  readonly time?: string;
  readonly level?: number;
  readonly thread?: string;
  readonly msg?: string;
  readonly err?: ErrorField;
  readonly [field: string]: unknown;
}

interface ErrorField {
  readonly type?: string;
  readonly code?: string;
  readonly message?: string;
  readonly stack?: string;
}

type Paint = (text: string) => string;

/** Each function returns the text unchanged where there are no colours. */
export interface Palette {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly red: Paint;
}

/** Select Graphic Rendition codes of ECMA-48: on and off. */
const CODES = { bold: [1, 22], dim: [2, 22], green: [32, 39], yellow: [33, 39], red: [31, 39] };

export function palette(isColoured: boolean): Palette {
  const paints = Object.entries(CODES).map(([name, [on, off]]): [string, Paint] => [
    name,
    (text) => (isColoured ? `\x1b[${on}m${text}\x1b[${off}m` : text),
  ]);
  return Object.fromEntries(paints) as unknown as Palette;
}

const WARN = 40;
const ERROR = 50;

/** Formats one JSON line of pino, with the stack of an error below it. */
export function textLine(json: string, paint: Palette): string {
  const { time = '', level = 0, thread = '', msg = '', err, ...fields } = JSON.parse(json) as Line;
  const clock = new Date(time).toTimeString().slice(0, 'HH:MM:SS'.length);
  const parts = [paint.dim(clock), toned(level, msg, paint)];
  if (thread !== 'front') parts.push(paint.dim(`[${plain(thread)}]`));
  const shown = { ...fields, ...(err === undefined ? {} : { error: summary(err) }) };
  for (const [name, value] of Object.entries(shown)) {
    parts.push(paint.dim(`${plain(name)}=`) + valueText(value));
  }
  const frames = level >= ERROR ? (err?.stack?.split('\n') ?? []) : [];
  return [parts.join(' '), ...frames.map((frame) => paint.dim(plain(frame))), ''].join('\n');
}

function toned(level: number, message: string, paint: Palette): string {
  const text = plain(message);
  if (level >= ERROR) return paint.red(`ERROR ${text}`);
  return level >= WARN ? paint.yellow(`WARN ${text}`) : text;
}

function summary({ type = 'Error', code, message }: ErrorField): string {
  const name = code === undefined ? type : `${type} ${code}`;
  return message === undefined ? name : `${name}: ${message}`;
}

/** Values without quotes: no blanks, and nothing that looks like a field. */
const BARE = /^[\w.,:;/@+~()=[\]-]+$/;

function valueText(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 1_000) / 1_000);
  if (typeof value === 'string' && BARE.test(value)) return value;
  return plain(JSON.stringify(value));
}

/** Control characters, including those beyond ASCII, and characters that change the writing direction. */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Equivalent JSON that is harmless on a terminal; line breaks stay. */
export function plainJson(text: string): string {
  return text.replace(UNSEEN, (c) => (c === '\n' ? c : c.split('').map(unitText).join('')));
}

const unitText = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Escapes characters that could move the cursor or colour the terminal. */
export function plain(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}
