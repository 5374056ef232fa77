/** What the two backends answer differently: made of the corpus that is run on both. */

import { DIFFERENCES, type Difference, RAW_REQUESTS } from '../../test/helpers/raw-requests.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

/** A group with more of them is told by its name and their number. */
const NAMED_MAX = 6;
const NAME_LENGTH_MAX = 60;

export function rawRequestRegions(): Regions {
  const differences = Object.keys(DIFFERENCES) as Difference[];
  const rows = differences.map((why) => [DIFFERENCES[why], requestsOf(why)]);
  const otherwise = RAW_REQUESTS.filter(({ uws }) => uws !== undefined).length;
  const counts = `Of the ${RAW_REQUESTS.length} raw requests of the corpus ${RAW_REQUESTS.length - otherwise} are answered alike, ${otherwise} otherwise.`;
  return {
    'http-differences': `${counts}\n\n${table(['what uWebSockets.js does otherwise', 'with'], rows)}`,
  };
}

function requestsOf(why: Difference): string {
  const named = new Map<string, string[]>();
  for (const { group, name, uws } of RAW_REQUESTS) {
    if (uws?.why !== why) continue;
    named.set(group, [...(named.get(group) ?? []), code(name.slice(0, NAME_LENGTH_MAX))]);
  }
  return [...named]
    .map(([group, names]) => {
      return names.length > NAMED_MAX
        ? `${group} (${names.length})`
        : `${group}: ${names.join(', ')}`;
    })
    .join('; ');
}
