/**
 * What a drawing or a list shows of each block beside its name: a state of a run, or a change between two
 * definitions. Drawings know faces only, and so the same drawing serves both.
 */

import type { LucideIcon } from 'lucide-react';
import { createContext, useContext } from 'react';
import type { Tone } from '../components/badge.tsx';
import { countOf, elapsedMs, formatDuration } from '../lib/format.ts';
import { STATE_LOOKS } from './block-state.tsx';
import type { OutlineBlock } from './outline.ts';
import { type BlockStatus, statusText, triesText } from './run-states.ts';
import { LOOK_WORDS } from './words.ts';

export interface Face {
  readonly tone: Tone;
  readonly icon: LucideIcon;
  /** Always there: a colour alone says nothing to many. */
  readonly word: string;
  /** More in a few words; may be ''. */
  readonly note: string;
  /** All of it in words. */
  readonly text: string;
  /** Nothing happens there: drawn with less weight. */
  readonly isFaint: boolean;
  readonly isStruck: boolean;
}

export type FaceOf = (path: string) => Face | undefined;

/** What is drawn of blocks, and which of them is selected. */
export interface View {
  readonly faceOf: FaceOf;
  readonly selected: string | null;
  readonly onSelect: (path: string) => void;
  readonly onToggle: (path: string) => void;
}

export const ViewContext = createContext<View>({
  faceOf: () => undefined,
  selected: null,
  onSelect: () => undefined,
  onToggle: () => undefined,
});

export const useView = () => useContext(ViewContext);

/** Such as `charge, step, failed, try 3 of 3`. */
export function labelOf(block: OutlineBlock, face: Face | undefined): string {
  const inside = block.size === 0 ? '' : `${countOf(block.size, 'block')} inside`;
  const origin = block.isInjected ? 'injected' : '';
  return [block.id, LOOK_WORDS[block.look], origin, face?.text ?? block.detail, inside]
    .filter((part) => part !== '')
    .join(', ');
}

/** @param now Unix ms, for the time that what runs has taken so far; undefined where it stands still */
export function runFace(status: BlockStatus, now: number | undefined): Face {
  const [tone, icon] = STATE_LOOKS[status.state];
  const { state, startedAt, endedAt, until, note, tryNumber, triesMax } = status;
  const isOpen = state === 'running' || state === 'waiting' || state === 'retrying';
  const end = endedAt ?? (isOpen ? now : undefined);
  const took =
    startedAt === undefined || end === undefined ? 0 : elapsedMs(startedAt, end, { until });
  const tookText = took > 0 ? formatDuration(took) : '';
  const left =
    until === undefined || now === undefined || until <= now
      ? ''
      : `${formatDuration(until - now)} left`;
  const tries = triesText(tryNumber, tryNumber === 1 && !isOpen ? undefined : triesMax);
  // What something waits for says that it waits.
  const word = state === 'waiting' && note !== '' ? note : state;
  const isSaid = word === note || (state === 'running' && status.waits.length > 0);
  return {
    ...{ tone, icon, word },
    note: [isSaid ? '' : note, tries, left === '' ? tookText : left]
      .filter((part) => part !== '')
      .join(' · '),
    text: [statusText(status), tookText, left].filter((part) => part !== '').join(', '),
    isFaint: state === 'skipped' || state === 'pending',
    isStruck: false,
  };
}
