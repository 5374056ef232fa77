/** The vocabulary of semantic diffs (docs/releases.md): categories, severities, and their order. */

import { words } from './states.js';

/** In ascending order. */
export const SEVERITIES = words('informational behavioral side_effect_risk incompatible');
export type Severity = (typeof SEVERITIES)[number];

export const DIFF_CATEGORIES = words(
  'block_added block_removed block_type_changed blocks_reordered structure_changed',
  'handler_changed params_changed retry_changed timeout_changed delay_changed',
  'rate_limit_changed router_changed loop_changed race_changed saga_changed split_changed',
  'sub_sequence_changed missing_output_reference queue_changed send_window_changed',
  'approval_gate_changed output_schema_changed when_guard_changed cancellable_changed',
  'credential_requirement_added input_schema_narrowed input_schema_changed hooks_changed',
  'limits_changed',
  'cancel_on_changed',
  'collecting_changed',
  'searchable_changed',
);
export type DiffCategory = (typeof DIFF_CATEGORIES)[number];

/**
 * Two versions of 5,000 blocks can differ in more than 50,000 ways; this many suffice to a reader and keep the response
 * small.
 */
export const DIFF_ENTRIES_MAX = 10_000;

export interface Entry {
  readonly category: DiffCategory;
  readonly severity: Severity;
  /** Absent for changes of the sequence as a whole. */
  readonly block_id?: string;
  readonly summary: string;
}

/** @param about absent for changes of the sequence as a whole, which are behavioral */
export function entryOf(
  category: DiffCategory,
  summary: string,
  about: Partial<Pick<Entry, 'severity' | 'block_id'>> = {},
): Entry {
  const { severity = 'behavioral', block_id } = about;
  return { category, severity, ...(block_id === undefined ? {} : { block_id }), summary };
}
