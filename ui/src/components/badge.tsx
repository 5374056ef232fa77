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
  type LucideIcon,
} from 'lucide-react';
import type { ReactNode } from 'react';
import styles from './badge.module.css';

export type Tone = 'ok' | 'info' | 'wait' | 'warn' | 'danger' | 'idle';

export function Badge(props: {
  readonly tone?: Tone;
  readonly icon?: LucideIcon;
  readonly children: ReactNode;
}) {
  const { tone = 'idle', icon: Icon, children } = props;
  return (
    <span className={styles.badge} data-tone={tone}>
      {Icon && <Icon size={13} aria-hidden />}
      {children}
    </span>
  );
}

const STATES: Record<InstanceState, readonly [tone: Tone, icon: LucideIcon]> = {
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
    <Badge tone={tone} icon={Icon}>
      {state}
    </Badge>
  );
}
