/** Whether a version is in force. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { Badge, type Tone } from '../../components/badge.tsx';

const TONES: Readonly<Record<SequenceListed['status'], Tone>> = {
  production: 'ok',
  staging: 'info',
  draft: 'idle',
  unpublished: 'idle',
};

export function SequenceStatus(props: {
  readonly sequence: Pick<SequenceListed, 'status' | 'deprecated'>;
}) {
  const { status, deprecated } = props.sequence;
  if (deprecated) return <Badge tone="warn">deprecated</Badge>;
  return <Badge tone={TONES[status]}>{status}</Badge>;
}
