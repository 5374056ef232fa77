/** What the diagram and the list of the same blocks share: which groups are open, and the switch between the two. */

import { List, Network } from 'lucide-react';
import { Suspense, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { Button } from '../components/button.tsx';
import { Place } from '../components/later.tsx';
import { later } from '../lib/load.ts';
import { type FaceOf, ViewContext } from './faces.tsx';
import styles from './flow.module.css';
import { FlowList } from './flow-list.tsx';
import { drawingOf, openAtFirst } from './layout.ts';
import type { Outline } from './outline.ts';
import './tones.css';

const FlowCanvas = later(() => import('./flow-canvas.tsx'));

/** On narrow screens there is only the list. */
const NARROW = '(max-width: 599px)';

export function FlowFrame(props: {
  readonly outline: Outline;
  readonly faceOf: FaceOf;
  readonly label: string;
  readonly selected: string | null;
  readonly onSelect: (path: string) => void;
}) {
  const { outline, faceOf, label, selected, onSelect } = props;
  const isNarrow = useIsNarrow();
  const [prefersList, setPrefersList] = useState(false);
  const [open, toggle] = useOpenGroups(outline, selected);
  const drawing = useMemo(() => drawingOf(outline, open), [outline, open]);
  const view = useMemo(
    () => ({ faceOf, selected, onSelect, onToggle: toggle }),
    [faceOf, selected, onSelect, toggle],
  );
  return (
    <ViewContext value={view}>
      <div className={styles.flow}>
        {!isNarrow && (
          <fieldset className={styles.switch} aria-label="View as">
            <Button
              kind={prefersList ? 'quiet' : 'plain'}
              icon={<Network size={15} aria-hidden />}
              aria-pressed={!prefersList}
              onClick={() => setPrefersList(false)}
            >
              Graph
            </Button>
            <Button
              kind={prefersList ? 'plain' : 'quiet'}
              icon={<List size={15} aria-hidden />}
              aria-pressed={prefersList}
              onClick={() => setPrefersList(true)}
            >
              List
            </Button>
          </fieldset>
        )}
        {isNarrow || prefersList ? (
          <FlowList outline={outline} open={open} label={label} />
        ) : (
          <Suspense fallback={<Place height={480} />}>
            <FlowCanvas drawing={drawing} label={label} />
          </Suspense>
        )}
      </div>
    </ViewContext>
  );
}

/** The groups that the user opened and closed, on top of those open at first; a selected block is always visible. */
function useOpenGroups(
  outline: Outline,
  selected: string | null,
): readonly [open: ReadonlySet<string>, toggle: (path: string) => void] {
  const first = useMemo(() => openAtFirst(outline), [outline]);
  const [choices, setChoices] = useState<ReadonlyMap<string, boolean>>(new Map());
  const open = useMemo(() => {
    const paths = new Set(first);
    for (const [path, isOpen] of choices) {
      if (isOpen) paths.add(path);
      else paths.delete(path);
    }
    return paths;
  }, [first, choices]);
  useEffect(() => {
    const around = groupsAround(outline, selected);
    if (around.length > 0) {
      setChoices((before) => new Map([...before, ...around.map((path) => [path, true] as const)]));
    }
  }, [outline, selected]);
  const toggle = useMemo(
    () => (path: string) =>
      setChoices((before) => new Map(before).set(path, !(before.get(path) ?? first.has(path)))),
    [first],
  );
  return [open, toggle];
}

function groupsAround({ byPath }: Outline, path: string | null): string[] {
  const around: string[] = [];
  let parent = path === null ? null : byPath.get(path)?.parent;
  while (parent != null) {
    around.push(parent);
    parent = byPath.get(parent)?.parent;
  }
  return around;
}

function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = matchMedia(NARROW);
      query.addEventListener('change', listener);
      return () => query.removeEventListener('change', listener);
    },
    () => matchMedia(NARROW).matches,
    () => false,
  );
}
