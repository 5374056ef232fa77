/** The icons of the kinds of blocks: a kind without one has that of an unknown block. */

import {
  BellRing,
  Box,
  CircleQuestionMark,
  Columns3,
  Flag,
  FlaskConical,
  Globe,
  ListOrdered,
  type LucideIcon,
  Moon,
  Repeat,
  ShieldAlert,
  ShieldCheck,
  Split,
  Undo2,
  UserRoundCheck,
  Workflow,
  Zap,
} from 'lucide-react';
import type { Look } from './kinds.ts';

const ICONS: Partial<Record<Look, LucideIcon>> = {
  step: Box,
  http_request: Globe,
  approval: UserRoundCheck,
  sleep: Moon,
  wait_for_event: BellRing,
  sub_sequence: Workflow,
  parallel: Columns3,
  race: Flag,
  router: Split,
  ab_split: FlaskConical,
  try_catch: ShieldAlert,
  saga: Undo2,
  loop: Repeat,
  for_each: ListOrdered,
  cancellation_scope: ShieldCheck,
  hooks: Zap,
};

export function LookIcon({ look, size = 16 }: { readonly look: Look; readonly size?: number }) {
  const Icon = ICONS[look] ?? CircleQuestionMark;
  return <Icon size={size} aria-hidden />;
}
