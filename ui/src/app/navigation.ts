/** The pages that the navigation leads to, in its order. */

import {
  Activity,
  AlarmClock,
  Boxes,
  CircleX,
  Database,
  GitBranch,
  KeyRound,
  Layers,
  ListTree,
  type LucideIcon,
  Radio,
  Rocket,
  ShieldCheck,
  UserCheck,
  Webhook,
  Zap,
} from 'lucide-react';
import type { Allowed } from '../api/allowed.ts';

export interface NavigationItem {
  readonly href: string;
  readonly label: string;
  readonly icon: LucideIcon;
  /** Absent: whoever may read. */
  readonly needs?: (allowed: Allowed) => boolean;
  /** Only where the engine is one of a cluster. */
  readonly isOfCluster?: true;
}

export interface NavigationGroup {
  readonly label: string;
  readonly items: readonly NavigationItem[];
}

const reads = (allowed: Allowed) => allowed.readAll;

export const NAVIGATION: readonly NavigationGroup[] = [
  {
    label: 'Run',
    items: [
      { href: '/', label: 'Overview', icon: Activity, needs: reads },
      {
        href: '/instances',
        label: 'Instances',
        icon: ListTree,
        needs: ({ readAll, start }) => readAll || start,
      },
      { href: '/failures', label: 'Failures', icon: CircleX, needs: reads },
      {
        href: '/approvals',
        label: 'Approvals',
        icon: UserCheck,
        needs: ({ readAll, approve }) => readAll || approve,
      },
      { href: '/schedules', label: 'Schedules', icon: AlarmClock, needs: reads },
      { href: '/jobs', label: 'Bulk jobs', icon: Layers, needs: reads },
    ],
  },
  {
    label: 'Build',
    items: [
      {
        href: '/sequences',
        label: 'Sequences',
        icon: GitBranch,
        needs: ({ readAll, publish, start }) => readAll || publish || start,
      },
      {
        href: '/releases',
        label: 'Releases',
        icon: Rocket,
        needs: ({ readAll, publish }) => readAll || publish,
      },
    ],
  },
  {
    label: 'Operate',
    items: [
      { href: '/workers', label: 'Workers and queues', icon: Zap, needs: reads },
      { href: '/webhooks', label: 'Webhooks', icon: Webhook, needs: reads },
      { href: '/triggers', label: 'Triggers and events', icon: Radio, needs: reads },
      { href: '/keys', label: 'Keys and secrets', icon: KeyRound, needs: reads },
      { href: '/limits', label: 'Limits', icon: ShieldCheck, needs: reads },
      { href: '/server', label: 'Server', icon: Database },
      {
        href: '/cells',
        label: 'Cells',
        icon: Boxes,
        needs: ({ administer }) => administer,
        isOfCluster: true,
      },
    ],
  },
];
