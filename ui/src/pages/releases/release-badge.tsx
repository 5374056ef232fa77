/** The state of a release as a coloured badge. */

import type { ReleaseState } from 'durable-workflow-engine-client';
import { Badge, type Tone } from '../../components/badge.tsx';

export const RELEASE_TONES: Readonly<Record<ReleaseState, Tone>> = {
  draft: 'idle',
  validating: 'wait',
  ready: 'info',
  canary: 'info',
  promoted: 'ok',
  paused: 'warn',
  rolled_back: 'danger',
  failed: 'danger',
};

export function releaseWord(state: ReleaseState): string {
  return state.replace('_', ' ');
}

export function ReleaseBadge({ state }: { readonly state: ReleaseState }) {
  return <Badge tone={RELEASE_TONES[state]}>{releaseWord(state)}</Badge>;
}
