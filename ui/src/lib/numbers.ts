/**
 * Parses numbers that users type: kept exactly, or rejected with the reason, in the engine's words where it has some.
 * Pure.
 */

import { DEFAULT_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.ts';

export interface NumberLimits {
  readonly isInteger?: boolean | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  /** Exclusive limits. */
  readonly above?: number | undefined;
  readonly below?: number | undefined;
}

export type NumberRead =
  | { readonly value: number; readonly wrong?: undefined }
  | { readonly wrong: string };

/** The number, within the limits; undefined for an empty text. */
export function readNumber(text: string, limits: NumberLimits = {}): NumberRead | undefined {
  const typed = text.trim();
  if (typed === '') return undefined;
  if (/^-?\d+,\d+$/.test(typed)) {
    return { wrong: `Use a decimal point: ${typed.replace(',', '.')}` };
  }
  const result = parseJson(typed, DEFAULT_JSON_LIMITS);
  if (!result.ok && result.problem.kind === 'number') {
    // The field is the place, so the position is dropped.
    return { wrong: result.problem.message.replace(/, at .*$/, '') };
  }
  if (!result.ok || typeof result.value !== 'number')
    return { wrong: 'Must be a number, such as 1.05' };
  const wrong = numberDoubt(result.value, limits);
  return wrong === undefined ? { value: result.value } : { wrong };
}

/** Why the number is outside its limits. */
export function numberDoubt(value: number, limits: NumberLimits): string | undefined {
  const { isInteger, min, max, above, below } = limits;
  if (isInteger && !Number.isInteger(value)) return 'Must be a whole number';
  if (min !== undefined && value < min) return `Must be at least ${min}`;
  if (max !== undefined && value > max) return `Must be at most ${max}`;
  if (above !== undefined && value <= above) return `Must be more than ${above}`;
  if (below !== undefined && value >= below) return `Must be less than ${below}`;
  return undefined;
}

/** @throws RangeError that names the field */
export function numberOf(label: string, text: string, limits?: NumberLimits): number {
  const read = readNumber(text, limits);
  if (read === undefined) throw new RangeError(`${label}: enter a number`);
  if (read.wrong !== undefined) throw new RangeError(`${label}: ${read.wrong}`);
  return read.value;
}
