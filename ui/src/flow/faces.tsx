/**
 * What a diagram or list shows of a block beside its name: its state in a run, or its change between two definitions.
 * Diagrams depend on this only, and so the same diagram serves both.
 */

import { CirclePlay, CircleX, type LucideIcon } from 'lucide-react';
import { createContext, useContext } from 'react';
import type { Tone } from '../components/badge.tsx';
import { countOf, elapsedMs, formatDuration } from '../lib/format.ts';
import { STATE_LOOKS } from './block-state.tsx';
import { type BlockStatistics, isFailing, statisticLines, statisticText } from './heat.ts';
import { lookName } from './kinds.ts';
import type { OutlineBlock } from './outline.ts';
import { attemptsText, type BlockStatus, statusText } from './run-states.ts';

export interface Face {
  readonly tone: Tone;
  readonly icon: LucideIcon;
  /** Always present, since colour alone is not accessible. */
  readonly word: string;
  /** More in a few words; may be ''. */
  readonly note: string;
  /** The full description in words. */
  readonly text: string;
  /** Nothing happens here: drawn with less emphasis. */
  readonly isFaint: boolean;
  readonly isStruck: boolean;
  /** A further line, such as durations. */
  readonly line?: string;
  /** Beside the name, in a few characters. */
  readonly mark?: string;
  /** From 0 to 1: how much of the time goes here. */
  readonly heat?: number;
}

export type FaceOf = (path: string) => Face | undefined;

/** How blocks are shown, and which one is selected. */
export interface View {
  /** Groups of which the blocks inside are shown. */
  readonly open: ReadonlySet<string>;
  readonly faceOf: FaceOf;
  readonly selected: string | null;
  readonly onSelect: (path: string) => void;
  readonly onToggle: (path: string) => void;
  /** The blocks that a search has found. */
  readonly found: ReadonlySet<string>;
  /** The one of them that is shown. */
  readonly target: string | null;
}

export const ViewContext = createContext<View>({
  open: new Set(),
  faceOf: () => undefined,
  selected: null,
  onSelect: () => undefined,
  onToggle: () => undefined,
  found: new Set(),
  target: null,
});

export const useView = () => useContext(ViewContext);

/** Such as `charge, step, failed, attempt 3 of 3`. */
export function labelOf(block: OutlineBlock, face: Face | undefined): string {
  const inside = block.size === 0 ? '' : `${countOf(block.size, 'block')} inside`;
  const origin = block.isInjected ? 'injected' : '';
  return [block.id, lookName(block.look), origin, face?.text ?? block.detail, inside]
    .filter((part) => part !== '')
    .join(', ');
}

/** @param now Unix ms, to show how long open blocks have taken so far; undefined to leave it out */
export function runFace(status: BlockStatus, now: number | undefined): Face {
  const [tone, icon] = STATE_LOOKS[status.state];
  const { state, startedAt, endedAt, until, note, attemptNumber, attemptsMax } = status;
  const isOpen = state === 'running' || state === 'waiting' || state === 'retrying';
  const end = endedAt ?? (isOpen ? now : undefined);
  const took =
    startedAt === undefined || end === undefined ? 0 : elapsedMs(startedAt, end, { until });
  const tookText = took > 0 ? formatDuration(took) : '';
  const left =
    until === undefined || now === undefined || until <= now
      ? ''
      : `${formatDuration(until - now)} left`;
  const attempts = attemptsText(
    attemptNumber,
    attemptNumber === 1 && !isOpen ? undefined : attemptsMax,
  );
  // A note on what it waits for already says that it waits.
  const word = state === 'waiting' && note !== '' ? note : state;
  const isSaid = word === note || (state === 'running' && status.waits.length > 0);
  return {
    ...{ tone, icon, word },
    note: [isSaid ? '' : note, attempts, left === '' ? tookText : left]
      .filter((part) => part !== '')
      .join(' · '),
    text: [statusText(status), tookText, left].filter((part) => part !== '').join(', '),
    isFaint: state === 'skipped' || state === 'pending',
    isStruck: false,
  };
}

/** Runs of many instances. */
export function statisticFace(step: BlockStatistics): Face {
  const { runs, failures, durations, here } = statisticLines(step);
  const isIdle = step.runs === 0 && step.here_now === 0;
  return {
    tone: isFailing(step) ? 'danger' : step.here_now > 0 ? 'info' : 'idle',
    icon: step.failures > 0 ? CircleX : CirclePlay,
    word: failures === '' ? runs : `${runs} · ${failures}`,
    note: '',
    line: durations,
    mark: here,
    text: statisticText(step),
    isFaint: isIdle,
    isStruck: false,
    heat: step.heat,
  };
}
