/**
 * Keeps the rows of a list in place (`lib/steady.ts`): of tables until the user asks for the new ones, of small lists
 * while the user points at them or has the focus in them.
 */

import { type FocusEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import {
  freshRows,
  type Steady,
  type SteadyOptions,
  type SteadyRow,
  steadyRows,
} from '../lib/steady.ts';

/** A pointer that has not moved for this long does not announce a click. */
const REST_MS = 5000;

const held = new Set<() => void>();

/** All lists show their current rows: what the user has just done is seen without asking for it. */
export function releaseLists(): void {
  for (const release of [...held]) release();
}

function useRelease(isHeld: boolean, release: () => void): void {
  const latest = useRef(release);
  latest.current = release;
  useEffect(() => {
    if (!isHeld) return undefined;
    const own = () => latest.current();
    held.add(own);
    return () => void held.delete(own);
  }, [isHeld]);
}

export interface HoldProps {
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerDown: () => void;
  readonly onPointerLeave: () => void;
  readonly onFocus: (event: FocusEvent) => void;
  readonly onBlur: (event: FocusEvent) => void;
}

/** @returns whether the list is held, and the props of the element around it */
export function useHold(): readonly [isHeld: boolean, props: HoldProps] {
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isHeld = isPointed || isFocused;
  useRelease(isHeld, () => {
    setPointed(false);
    setFocused(false);
  });
  useEffect(() => () => clearTimeout(rest.current), []);
  const point = () => {
    clearTimeout(rest.current);
    rest.current = setTimeout(() => setPointed(false), REST_MS);
    setPointed(true);
  };
  return [
    isHeld,
    {
      // Browsers report an element that moves under a resting pointer as a move by zero.
      onPointerMove: ({ movementX, movementY }) => (movementX !== 0 || movementY !== 0) && point(),
      onPointerDown: point,
      onPointerLeave: () => setPointed(false),
      // Only keyboard focus counts: clicked elements keep the focus, too.
      onFocus: ({ target }) => setFocused(target.matches(':focus-visible')),
      onBlur: ({ currentTarget, relatedTarget }) =>
        setFocused((is) => is && currentTarget.contains(relatedTarget)),
    },
  ];
}

/**
 * @param isHeld whether the rows shown stay in place
 * @param of identifies the list and page: another one is shown at once
 */
export function useSteady<Row>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
  options: SteadyOptions & { readonly isHeld: boolean; readonly of: string },
): Steady<Row> {
  const { isHeld, of } = options;
  const shown = useRef<{ readonly of: string; readonly rows: readonly SteadyRow<Row>[] }>(
    undefined,
  );
  const before = shown.current?.of === of && isHeld ? shown.current.rows : undefined;
  const steady =
    before === undefined
      ? { rows: freshRows(rows), waiting: 0 }
      : steadyRows(before, rows, idOf, options);
  shown.current = { of, rows: steady.rows };
  return steady;
}

/** For a list that updates by itself: its rows, if there are any, stay until the user asks for the current ones. */
export function useAsked<Row>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
  options: { readonly of: string; readonly hasMore: boolean },
): Steady<Row> & { readonly show: () => void } {
  const [shown, setShown] = useState(0);
  const show = () => setShown((count) => count + 1);
  useRelease(true, show);
  const wasEmpty = useRef(true);
  const { of, hasMore } = options;
  const isHeld = !wasEmpty.current;
  const steady = useSteady(rows, idOf, { isHeld, hasMore, of: `${shown} ${of}` });
  wasEmpty.current = steady.rows.length === 0;
  return { ...steady, show };
}
