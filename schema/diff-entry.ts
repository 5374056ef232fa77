/**
 * The vocabulary of semantic diffs (docs/releases.md): categories, severities, and the order of
 * both.
 */

/** In ascending order. */
export const SEVERITIES = [
  'informational',
  'behavioral',
  'side_effect_risk',
  'incompatible',
] as const;
export type Severity = (typeof SEVERITIES)[number];

export const DIFF_CATEGORIES = [
  'block_added',
  'block_removed',
  'block_type_changed',
  'blocks_reordered',
  'structure_changed',
  'handler_changed',
  'params_changed',
  'retry_changed',
  'timeout_changed',
  'delay_changed',
  'rate_limit_changed',
  'router_changed',
  'loop_changed',
  'race_changed',
  'saga_changed',
  'split_changed',
  'sub_sequence_changed',
  'missing_output_reference',
  'queue_changed',
  'send_window_changed',
  'approval_gate_changed',
  'output_schema_changed',
  'when_guard_changed',
  'cancellable_changed',
  'credential_requirement_added',
  'input_schema_narrowed',
  'input_schema_changed',
  'hooks_changed',
] as const;
export type DiffCategory = (typeof DIFF_CATEGORIES)[number];

/**
 * Two versions of 5,000 blocks can differ in more than 50,000 ways; whoever reads this many learns
 * nothing from the rest, and the answer stays within the size of other answers.
 */
export const DIFF_ENTRIES_MAX = 10_000;

export interface Entry {
  readonly category: DiffCategory;
  readonly severity: Severity;
  /** Absent for what concerns the sequence as a whole. */
  readonly block_id?: string;
  readonly summary: string;
}

/** @param about nothing when it concerns the sequence as a whole, and is behavioral */
export function entryOf(
  category: DiffCategory,
  summary: string,
  about: Partial<Pick<Entry, 'severity' | 'block_id'>> = {},
): Entry {
  const { severity = 'behavioral', block_id } = about;
  return { category, severity, ...(block_id === undefined ? {} : { block_id }), summary };
}
