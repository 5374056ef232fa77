/** A failure for people to read: the seed is run again with its trace, which is cut to what matters. */

import { simulate } from './simulate.js';

/** Lines about the instance, and lines of any kind, before the end. */
const ABOUT_MAX = 40;
const LAST_MAX = 15;

const LINE_LENGTH_MAX = 400;

export async function readableFailure(seed: number, isBrief: boolean): Promise<string> {
  const { violation, trace } = await simulate(seed, { isTraced: true, isBrief });
  const lines = trace.lines ?? [];
  const instance = violation?.instance;
  const about = instance === undefined ? [] : lines.filter((line) => line.includes(instance));
  return [
    `${isBrief ? 'brief ' : ''}seed ${seed}: ${violation?.message ?? 'it did not fail again'} ${instance ?? ''}`,
    ...about.slice(-ABOUT_MAX).map(cut),
    '  … and the last of everything:',
    ...lines.slice(-LAST_MAX).map(cut),
    '',
  ].join('\n');
}

const cut = (line: string) =>
  line.length > LINE_LENGTH_MAX ? `${line.slice(0, LINE_LENGTH_MAX)} …` : line;
