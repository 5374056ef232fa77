/** The status of a version; a deprecated version or one on hold is shown as such, whatever its status. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { Badge, type Tone } from '../../components/badge.tsx';

const TONES: Readonly<Record<SequenceListed['status'], Tone>> = {
  production: 'ok',
  staging: 'info',
  draft: 'idle',
  unpublished: 'idle',
};

export function SequenceStatus(props: {
  readonly sequence: Pick<SequenceListed, 'status' | 'deprecated' | 'hold'>;
}) {
  const { status, deprecated, hold } = props.sequence;
  if (deprecated) return <Badge tone="warn">deprecated</Badge>;
  if (hold) return <Badge tone="wait">on hold</Badge>;
  return <Badge tone={TONES[status]}>{status}</Badge>;
}
