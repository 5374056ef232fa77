/** A short state in words and colour: never by colour alone. */

import type { InstanceState } from 'durable-workflow-engine-client';
import {
  CircleCheck,
  CircleDashed,
  CirclePause,
  CirclePlay,
  CircleSlash,
  CircleX,
  Hourglass,
} from 'lucide-react';
import type { ReactNode } from 'react';
import styles from './badge.module.css';

export type Tone = 'ok' | 'info' | 'wait' | 'warn' | 'danger' | 'idle';

export function Badge(props: {
  readonly tone?: Tone;
  readonly icon?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <span className={styles.badge} data-tone={props.tone ?? 'idle'}>
      {props.icon}
      {props.children}
    </span>
  );
}

const STATES: Record<InstanceState, readonly [tone: Tone, icon: typeof CircleX]> = {
  scheduled: ['idle', CircleDashed],
  running: ['info', CirclePlay],
  waiting: ['wait', Hourglass],
  paused: ['warn', CirclePause],
  completed: ['ok', CircleCheck],
  failed: ['danger', CircleX],
  cancelled: ['idle', CircleSlash],
};

export function StateBadge({ state }: { readonly state: InstanceState }) {
  const [tone, Icon] = STATES[state];
  return (
    <Badge tone={tone} icon={<Icon size={13} aria-hidden />}>
      {state}
    </Badge>
  );
}
