/**
 * Live progress in a terminal: one line per item, redrawn in place on a TTY; elsewhere a plain line
 * whenever something changed. Events are lines above it that stay.
 */

export interface Progress {
  /** Replaces all lines. */
  show(lines: readonly string[]): void;
  event(text: string): void;
}

/** What any terminal has; one that does not know its width says 0. */
export const COLUMNS = 80;

export function createProgress(out: NodeJS.WriteStream): Progress {
  return out.isTTY ? redrawing(out) : plain(out);
}

function redrawing(out: NodeJS.WriteStream): Progress {
  let shown: readonly string[] = [];
  const draw = (above: readonly string[], lines: readonly string[]) => {
    // Up over what is shown, then each line anew; a longer line would wrap and upset the count.
    const up = shown.length === 0 ? '' : `\x1b[${shown.length}A`;
    const text = [...above, ...lines].map(
      (line) => `\x1b[2K${line.slice(0, (out.columns || COLUMNS) - 1)}\n`,
    );
    out.write(`${up}\r${text.join('')}`);
    shown = lines;
  };
  return {
    show: (lines) => draw([], lines),
    event: (text) => draw([text], shown),
  };
}

function plain(out: NodeJS.WriteStream): Progress {
  let shown: readonly string[] = [];
  return {
    show(lines) {
      for (const line of lines) if (!shown.includes(line)) out.write(`${line}\n`);
      shown = lines;
    },
    event: (text) => void out.write(`${text}\n`),
  };
}

/** Rows under a header, in columns as wide as their widest cell; the last is cut at `columns`. */
export function table(rows: readonly (readonly string[])[], columns: number): string {
  const wanted = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  const before = wanted.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  const widths = [...wanted.slice(0, -1), Math.min(wanted.at(-1) ?? 0, columns - before)];
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cut(cell, widths[i]!).padEnd(widths[i]!))
      .join(GAP)
      .trimEnd();
  const [header, ...body] = rows.map(line);
  const rule = widths.map((width) => '-'.repeat(width)).join(GAP);
  return [header, rule, ...body].join('\n');
}

const GAP = '  ';

const cut = (text: string, width: number) =>
  text.length <= width ? text : `${text.slice(0, width - 1)}…`;
