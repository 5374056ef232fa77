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

export const SignalAnswer = t.named(
  'SignalAnswer',
  'What became of a signal while its sender waited.',
  {
    signal_id: t.Uuid,
    taken: t.boolean('Whether a step has taken it, or it took effect immediately.'),
    block_id: t.optional(
      t.text(),
      'The step that took it or, if taken is false, refused its payload.',
    ),
    reply: t.optional(t.AnyJson, 'The rendered `reply` of the step.'),
  },
);
export type SignalAnswer = t.Static<typeof SignalAnswer>;
