/** What the diagram and the list of the same blocks share: which groups are open, the search, and the switch between both. */

import { List, Network } from 'lucide-react';
import {
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react';
import { Toggle } from '../components/button.tsx';
import { Place } from '../components/later.tsx';
import { later } from '../lib/load.ts';
import { type FaceOf, ViewContext } from './faces.tsx';
import styles from './flow.module.css';
import { FlowList } from './flow-list.tsx';
import { SearchField, useSearch } from './flow-search.tsx';
import { drawingOf, isGroup, openAtFirst, openToDepth } from './layout.ts';
import type { Outline } from './outline.ts';

const FlowCanvas = later(() => import('./flow-canvas.tsx'));

/** On narrow screens there is only the list. */
const NARROW = '(max-width: 599px)';

export function FlowFrame(props: {
  readonly outline: Outline;
  readonly faceOf: FaceOf;
  readonly label: string;
  readonly selected: string | null;
  readonly onSelect: (path: string) => void;
  /** Undefined: blocks have two lines. */
  readonly leafHeight?: number | undefined;
  readonly tools?: ReactNode;
}) {
  const { outline, faceOf, label, selected, onSelect, leafHeight } = props;
  const isNarrow = useIsNarrow();
  const [prefersList, setPrefersList] = useState(false);
  const groups = useOpenGroups(outline, selected);
  const { open, toggle, openAround } = groups;
  const search = useSearch(outline, openAround);
  const drawing = useMemo(() => drawingOf(outline, open, leafHeight), [outline, open, leafHeight]);
  const found = useMemo(() => new Set(search.paths), [search.paths]);
  const target = search.at === undefined ? null : (search.paths[search.at] ?? null);
  const view = useMemo(
    () => ({ open, faceOf, selected, onSelect, onToggle: toggle, found, target }),
    [open, faceOf, selected, onSelect, toggle, found, target],
  );
  return (
    <ViewContext value={view}>
      <div className={styles.flow}>
        <div className={styles.tools}>
          {!isNarrow && (
            <fieldset className={styles.switch} aria-label="View as">
              <Toggle icon={Network} isOn={!prefersList} onClick={() => setPrefersList(false)}>
                Graph
              </Toggle>
              <Toggle icon={List} isOn={prefersList} onClick={() => setPrefersList(true)}>
                List
              </Toggle>
            </fieldset>
          )}
          <SearchField search={search} />
          <Depths outline={outline} depth={groups.depth} onChange={groups.setDepth} />
          {props.tools}
        </div>
        {isNarrow || prefersList ? (
          <FlowList outline={outline} label={label} />
        ) : (
          <Suspense fallback={<Place height={480} />}>
            <FlowCanvas drawing={drawing} label={label} />
          </Suspense>
        )}
      </div>
    </ViewContext>
  );
}

/** How many levels of blocks are shown. */
const DEPTHS = [
  { depth: 1, label: '1' },
  { depth: 2, label: '2' },
  { depth: Number.POSITIVE_INFINITY, label: 'All' },
] as const;

function Depths(props: {
  readonly outline: Outline;
  readonly depth: number | undefined;
  readonly onChange: (depth: number) => void;
}) {
  const { outline, depth, onChange } = props;
  if (![...outline.byPath.values()].some(isGroup)) return null;
  return (
    <fieldset className={styles.switch} aria-label="Depth">
      <span className={styles.switchName} aria-hidden>
        Depth
      </span>
      {DEPTHS.map((one) => (
        <Toggle
          key={one.label}
          isOn={one.depth === depth}
          aria-label={one.depth === Number.POSITIVE_INFINITY ? 'All levels' : `Depth ${one.depth}`}
          onClick={() => onChange(one.depth)}
        >
          {one.label}
        </Toggle>
      ))}
    </fieldset>
  );
}

/**
 * The groups that the user opened and closed, on top of those open at first or at the chosen depth; a selected block is
 * always visible.
 */
function useOpenGroups(outline: Outline, selected: string | null) {
  const [depth, setDepth] = useState<number>();
  const first = useMemo(
    () => (depth === undefined ? openAtFirst(outline) : openToDepth(outline, depth)),
    [outline, depth],
  );
  const [choices, setChoices] = useState<ReadonlyMap<string, boolean>>(new Map());
  const open = useMemo(() => {
    const paths = new Set(first);
    for (const [path, isOpen] of choices) {
      if (isOpen) paths.add(path);
      else paths.delete(path);
    }
    return paths;
  }, [first, choices]);
  const openAround = useCallback(
    (block: string | null) => {
      const around = groupsAround(outline, block);
      if (around.length > 0) {
        setChoices(
          (before) => new Map([...before, ...around.map((path) => [path, true] as const)]),
        );
      }
    },
    [outline],
  );
  useEffect(() => openAround(selected), [openAround, selected]);
  const toggle = useCallback(
    (path: string) =>
      setChoices((before) => new Map(before).set(path, !(before.get(path) ?? first.has(path)))),
    [first],
  );
  return {
    ...{ open, toggle, openAround, depth },
    setDepth: (chosen: number) => {
      setDepth(chosen);
      setChoices(new Map());
    },
  };
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
