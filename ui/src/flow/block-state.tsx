/** How a block's state is shown: an icon and a word in the colour of its meaning. */

import {
  CircleCheck,
  CircleDashed,
  CirclePlay,
  CircleSlash,
  CircleX,
  Hourglass,
  type LucideIcon,
  RotateCw,
  SkipForward,
} from 'lucide-react';
import { Badge, type Tone } from '../components/badge.tsx';
import type { DrawnState } from './run-states.ts';

export const STATE_LOOKS: Readonly<Record<DrawnState, readonly [tone: Tone, icon: LucideIcon]>> = {
  pending: ['idle', CircleDashed],
  running: ['info', CirclePlay],
  waiting: ['wait', Hourglass],
  retrying: ['warn', RotateCw],
  completed: ['ok', CircleCheck],
  failed: ['danger', CircleX],
  cancelled: ['idle', CircleSlash],
  skipped: ['idle', SkipForward],
};

/** @param props.text replaces the name of the state */
export function StateMark({ state, text }: { readonly state: DrawnState; readonly text?: string }) {
  const [tone, Icon] = STATE_LOOKS[state];
  return (
    <Badge tone={tone} icon={Icon}>
      {text ?? state}
    </Badge>
  );
}
