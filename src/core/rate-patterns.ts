/**
 * Patterns of rate limits: a limit whose key contains `*`, which stands for any text, is the default of every key that
 * matches. The key's own limit comes first, then the most specific pattern.
 */

export const isPattern = (key: string): boolean => key.includes('*');

interface Limit {
  readonly limit_key: string;
}

/** The limit of the key among its own and the patterns; undefined: it is unlimited. */
export function limitFor<L extends Limit>(limits: Iterable<L>, key: string): L | undefined {
  let best: L | undefined;
  for (const limit of limits) {
    const { limit_key: text } = limit;
    if (!isPattern(text)) {
      if (text === key) return limit;
    } else if (matches(text, key) && (best === undefined || isBefore(text, best.limit_key))) {
      best = limit;
    }
  }
  return best;
}

/** The longer literal text is more specific; of equally long ones, the first in the order of code units. */
function isBefore(a: string, b: string): boolean {
  const more = literalLength(a) - literalLength(b);
  return more > 0 || (more === 0 && a < b);
}

const literalLength = (pattern: string): number => pattern.replaceAll('*', '').length;

/** In linear time: each part between stars is taken where it first occurs. */
function matches(pattern: string, key: string): boolean {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  if (key.length < first.length + last.length) return false;
  if (!key.startsWith(first) || !key.endsWith(last)) return false;
  const end = key.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = key.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
