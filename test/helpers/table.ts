/**
 * The cases of a table in text: a line each, its cells between bars. A line that begins with `#` says
 * why the cases below it are there.
 */
export function casesIn(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
}

/** The words of a text, for lists that are only looked over. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
