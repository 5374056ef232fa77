/** The entries of the navigation, in order. */

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

export interface NavigationItem {
  readonly href: string;
  readonly label: string;
  readonly icon: LucideIcon;
  /** Shown only if the engine is part of a cluster. */
  readonly isOfCluster?: true;
}

export interface NavigationGroup {
  readonly label: string;
  readonly items: readonly NavigationItem[];
}

export const NAVIGATION: readonly NavigationGroup[] = [
  {
    label: 'Run',
    items: [
      { href: '/', label: 'Overview', icon: Activity },
      {
        href: '/instances',
        label: 'Instances',
        icon: ListTree,
      },
      { href: '/failures', label: 'Failures', icon: CircleX },
      {
        href: '/approvals',
        label: 'Approvals',
        icon: UserCheck,
      },
      { href: '/schedules', label: 'Schedules', icon: AlarmClock },
      { href: '/jobs', label: 'Bulk jobs', icon: Layers },
    ],
  },
  {
    label: 'Build',
    items: [
      {
        href: '/sequences',
        label: 'Sequences',
        icon: GitBranch,
      },
      {
        href: '/releases',
        label: 'Releases',
        icon: Rocket,
      },
    ],
  },
  {
    label: 'Operate',
    items: [
      { href: '/workers', label: 'Workers and queues', icon: Zap },
      { href: '/webhooks', label: 'Webhooks', icon: Webhook },
      { href: '/triggers', label: 'Triggers and events', icon: Radio },
      { href: '/keys', label: 'Keys and secrets', icon: KeyRound },
      { href: '/limits', label: 'Limits', icon: ShieldCheck },
      { href: '/server', label: 'Server', icon: Database },
      {
        href: '/cells',
        label: 'Cells',
        icon: Boxes,
        isOfCluster: true,
      },
    ],
  },
];
