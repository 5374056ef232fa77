/** The status of a version; a deprecated version or one on hold is shown as such, whatever its status. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { Badge } from '../../components/badge.tsx';
import { StateWord } from '../../components/state-word.tsx';

export function SequenceStatus(props: {
  readonly sequence: Pick<SequenceListed, 'status' | 'deprecated' | 'hold'>;
}) {
  const { status, deprecated, hold } = props.sequence;
  if (deprecated) return <Badge tone="warn">deprecated</Badge>;
  if (hold) return <Badge tone="wait">on hold</Badge>;
  return <StateWord state={status} />;
}
