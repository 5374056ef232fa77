/** The state of a task, event, delivery, effect and so on, in its colour. Instances and releases have their own. */

import { Badge, type Tone } from './badge.tsx';

const STATES = {
  ok: [
    ...(['completed', 'consumed', 'committed', 'verified', 'taken', 'applied'] as const),
    ...(['idle', 'open', 'done', 'production'] as const),
  ],
  info: [
    ...(['in_flight', 'claimed', 'running', 'delivering', 'dispatched'] as const),
    ...(['copying', 'switched', 'staging'] as const),
  ],
  wait: ['pending', 'kept', 'prepared'],
  warn: ['cancelling', 'draining', 'unknown', 'behavioral'],
  danger: [
    ...(['failed', 'timed_out', 'refused', 'parked', 'paused', 'given_up'] as const),
    ...(['side_effect_risk', 'incompatible'] as const),
  ],
  idle: [
    ...(['cancelled', 'expired', 'disabled', 'closed', 'planned', 'compensated'] as const),
    ...(['abandoned', 'draft', 'unpublished', 'informational'] as const),
  ],
} as const satisfies Record<Tone, readonly string[]>;

type StateName = (typeof STATES)[Tone][number];

const TONES = new Map(
  Object.entries(STATES).flatMap(([tone, names]) => names.map((name) => [name, tone as Tone])),
);

/** @param props.word instead of the name of the state */
export function StateWord({
  state,
  word,
}: {
  readonly state: StateName;
  readonly word?: string | undefined;
}) {
  return <Badge tone={TONES.get(state) ?? 'idle'}>{word ?? state.replaceAll('_', ' ')}</Badge>;
}
