/** Stored and listed signals of an instance. */

import * as t from './common.js';

const SIGNAL_STATUSES = ['kept', 'taken', 'refused', 'applied'] as const;
const SignalStatus = t.oneOf(
  SIGNAL_STATUSES,
  'kept: no step has waited for it yet; taken, refused: consumed by ' +
    'taken_by; applied: took effect immediately.',
);

export const StoredSignal = t.named('StoredSignal', 'A signal sent to an instance.', {
  id: t.Uuid,
  instance_id: t.Uuid,
  signal_type: t.text(),
  payload: t.AnyJson,
  created_at: t.Timestamp,
  status: SignalStatus,
  taken_at: t.nullable(t.Timestamp),
  taken_by: t.nullable(t.text(), 'Block that consumed the signal.'),
  sent_by: t.nullable(t.text(), "Name of the sender's key; null: unknown."),
});
export type StoredSignal = t.Static<typeof StoredSignal>;

export const SignalListQuery = t.object({
  signal_type: t.optional(t.text()),
  status: t.optional(SignalStatus),
  ...t.pageOf(),
});

export const SignalAccepted = t.named('SignalAccepted', { signal_id: t.Uuid });
export type SignalAccepted = t.Static<typeof SignalAccepted>;
