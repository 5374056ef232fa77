/** Keeps the rows of a list in place while the user points at it or has the focus in it (`lib/steady.ts`). */

import { type FocusEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import { freshRows, type Steady, type SteadyRow, steadyRows } from '../lib/steady.ts';

/** A pointer that has not moved for this long does not announce a click. */
const REST_MS = 5000;

/** Releases all lists: a dialog that closes calls this, so that its effect is shown. */
const held = new Set<() => void>();

export function releaseLists(): void {
  for (const release of [...held]) release();
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
  useEffect(() => {
    if (!isHeld) return undefined;
    const release = () => {
      setPointed(false);
      setFocused(false);
    };
    held.add(release);
    return () => void held.delete(release);
  }, [isHeld]);
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
  options: { readonly isHeld: boolean; readonly of: string; readonly appends?: boolean },
): Steady<Row> {
  const { isHeld, of, appends = false } = options;
  const shown = useRef<{ readonly of: string; readonly rows: readonly SteadyRow<Row>[] }>(
    undefined,
  );
  const before = shown.current?.of === of && isHeld ? shown.current.rows : undefined;
  const steady =
    before === undefined
      ? { rows: freshRows(rows), waiting: 0 }
      : steadyRows(before, rows, idOf, appends);
  shown.current = { of, rows: steady.rows };
  return steady;
}
