/** The entries of the navigation, in order. */

import {
  Activity,
  AlarmClock,
  Boxes,
  CircleX,
  CopyPlus,
  Database,
  GitBranch,
  History,
  KeyRound,
  Layers,
  ListTree,
  type LucideIcon,
  Radio,
  Rocket,
  ScrollText,
  ShieldCheck,
  UserCheck,
  Webhook,
  Zap,
} from 'lucide-react';

export interface NavigationItem {
  readonly href: string;
  readonly label: string;
  readonly icon: LucideIcon;
  /** Pressed after `g`, it opens the page. */
  readonly key?: string;
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
      { href: '/', label: 'Overview', icon: Activity, key: 'o' },
      { href: '/instances', label: 'Instances', icon: ListTree, key: 'i' },
      { href: '/failures', label: 'Failures', icon: CircleX, key: 'f' },
      { href: '/logs', label: 'Logs', icon: ScrollText, key: 'l' },
      { href: '/approvals', label: 'Approvals', icon: UserCheck, key: 'a' },
      { href: '/schedules', label: 'Schedules', icon: AlarmClock },
      { href: '/pending-starts', label: 'Pending starts', icon: CopyPlus },
      { href: '/jobs', label: 'Bulk jobs', icon: Layers },
    ],
  },
  {
    label: 'Build',
    items: [
      { href: '/sequences', label: 'Sequences', icon: GitBranch, key: 's' },
      { href: '/releases', label: 'Releases', icon: Rocket, key: 'r' },
    ],
  },
  {
    label: 'Operate',
    items: [
      { href: '/workers', label: 'Workers and queues', icon: Zap, key: 'w' },
      { href: '/webhooks', label: 'Webhooks', icon: Webhook },
      { href: '/triggers', label: 'Triggers and events', icon: Radio },
      { href: '/keys', label: 'Keys and secrets', icon: KeyRound },
      { href: '/limits', label: 'Limits', icon: ShieldCheck },
      { href: '/activity', label: 'Activity', icon: History },
      { href: '/server', label: 'Server', icon: Database },
      { href: '/cells', label: 'Cells', icon: Boxes, isOfCluster: true },
    ],
  },
];
