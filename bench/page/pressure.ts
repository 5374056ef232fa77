/** The generated regions of docs/security.md: what one tenant can take from the others, by the stored results. Pure. */

import { code } from '../../scripts/reference/markdown.js';
import type { Regions } from '../../scripts/reference/regions.js';
import { ATTACK_NAMES } from '../pressure/attack-names.js';
import type { CrowdName, PressureRow, StoredPressure } from '../pressure/run.js';
import { OPERATIONS } from '../pressure/victim.js';
import { round } from '../report.js';
import { isReached, type TargetName } from '../targets.js';
import { foundIn, measuredTable, sourcesOf, text } from './regions.js';
import type { StoredParts } from './stored.js';

const PARTS = ATTACK_NAMES.map((name) => `pressure ${name}`);

export function pressureRegions(parts: StoredParts): Regions {
  return {
    'pressure-two': crowd(parts, 'two'),
    'pressure-fifty': crowd(parts, 'fifty'),
    'pressure-sources': sourcesOf(foundIn(parts, PARTS)),
  };
}

function crowd(parts: StoredParts, wanted: CrowdName): string {
  const rows = PARTS.flatMap((name) => parts.get<StoredPressure>(name)?.results.rows ?? []);
  const shown = measuredTable(
    [
      'tenant A',
      ...OPERATIONS.map((name) => `${name} p99 ms`),
      'errors',
      'MiB',
      'CPU %',
      'A was answered',
    ],
    rows.filter((row) => row.crowd === wanted).map(cellsOf),
  );
  const missing = ATTACK_NAMES.filter((name) => !rows.some(({ attack }) => attack === name));
  if (rows.length === 0 || missing.length === 0) return shown;
  return `${shown}\n\nNot measured: ${missing.map(code).join(', ')}.`;
}

function cellsOf(row: PressureRow) {
  const { what, idle, attacked, ratios, errors, attackers, peakMib, cpuPercent: cpu } = row;
  const times = OPERATIONS.map((name) => {
    const ratio = ratios[name] ?? Number.NaN;
    const [before, under] = [idle.latency[name].p99, attacked.latency[name].p99];
    const said = marked('pressure ratio', ratio, `${text(ratio)} ×`);
    // Without one that came to an end there is no time: all of them are among the errors.
    return attacked.latency[name].count === 0
      ? '**none**'
      : `${text(before)} → ${text(under)}, ${said}`;
  });
  const answers = Object.entries(attackers).map(([status, count]) => `${status}: ${text(count)}`);
  return [
    what,
    ...times,
    marked('pressure errors', errors, text(errors)),
    text(peakMib),
    cpu === undefined ? '' : [cpu.server, cpu.database, cpu.others, cpu.attacker].join(' / '),
    answers.join(', '),
  ];
}

function marked(target: TargetName, value: number, said: string): string {
  return isReached(target, round(value)) ? said : `**${said}**`;
}
