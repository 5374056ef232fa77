/** Finds anything from every page: instances and sequences by the search, pages, and actions. Used by keyboard. */

import type { SearchHit } from 'durable-workflow-engine-client';
import {
  ArrowLeftRight,
  Clock,
  GitBranch,
  Keyboard,
  ListTree,
  LogOut,
  type LucideIcon,
  Play,
  Plus,
  Rocket,
  Search,
  SunMoon,
} from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine, useMaySee } from '../api/engine.tsx';
import { useRead } from '../api/read.ts';
import { StateBadge } from '../components/badge.tsx';
import { ShortId } from '../components/copy.tsx';
import { Dialog } from '../components/dialog.tsx';
import { ErrorBox } from '../components/error-box.tsx';
import { Time } from '../components/time.tsx';
import { hrefOf } from '../lib/address.ts';
import { useRested } from '../lib/rested.ts';
import { NAVIGATION } from './navigation.ts';
import styles from './palette.module.css';
import { matching, type PaletteEntry, stepFrom } from './palette-entries.ts';
import { signOut } from './queries.ts';
import { noteRecent, recentOf } from './recent.ts';
import { listShortcuts } from './shortcuts.tsx';
import { switchTenant } from './tenant-address.tsx';
import { useTheme } from './theme.ts';

interface Entry extends PaletteEntry {
  readonly icon: LucideIcon;
  readonly detail?: string | undefined;
  readonly beside?: ReactNode;
  /** Absent: `onChoose` acts. */
  readonly href?: string;
  readonly onChoose?: () => void;
}

interface Group {
  readonly name: string;
  readonly entries: readonly Entry[];
}

/** Few, so that all groups are seen at once. */
const HITS_MAX = 12;
const PAGES_SHOWN = 5;

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const { tenant } = useEngine();
  const [, go] = useLocation();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState<string>();
  /** Enter was pressed before the hits had come. */
  const [isAwaited, setAwaited] = useState(false);
  const listId = useId();
  const query = text.trim();
  const { hits, isBusy, error } = useHits(query);
  const groups = useGroups(query, hits);
  const entries = groups.flatMap((group) => group.entries);
  const active = entries.find(({ key }) => key === chosen) ?? entries[0];
  const idOf = (key: string) => `${listId}-${key}`;

  const open = (entry: Entry) => {
    onClose();
    if (entry.href === undefined) return entry.onChoose?.();
    const { href, label, detail } = entry;
    noteRecent(tenant, { href, label, detail });
    go(href);
  };
  useEffect(() => {
    if (!isAwaited || isBusy) return;
    setAwaited(false);
    if (active !== undefined) open(active);
  });
  useEffect(() => {
    if (active !== undefined)
      document.getElementById(idOf(active.key))?.scrollIntoView?.({ block: 'nearest' });
  });

  function onKey(event: KeyboardEvent) {
    const by = ({ ArrowDown: 1, ArrowUp: -1 } as const)[event.key as 'ArrowDown' | 'ArrowUp'];
    if (by !== undefined) {
      event.preventDefault();
      setChosen(
        stepFrom(
          entries.map(({ key }) => key),
          active?.key,
          by,
        ),
      );
    } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault();
      if (isBusy && chosen === undefined) setAwaited(true);
      else if (active !== undefined) open(active);
    }
  }

  const isEmpty = query !== '' && entries.length === 0 && !isBusy && !error;
  return (
    <Dialog title="Find" isBare onClose={onClose}>
      <div className={styles.field}>
        <Search size={18} aria-hidden />
        <input
          autoFocus
          role="combobox"
          aria-label="Find"
          aria-expanded={entries.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={active && idOf(active.key)}
          autoComplete="off"
          spellCheck={false}
          placeholder="Id, idempotency key, order number, sequence, page…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setChosen(undefined);
            setAwaited(false);
          }}
          onKeyDown={onKey}
        />
        <kbd className={styles.key}>Esc</kbd>
      </div>
      <div id={listId} role="listbox" aria-label="Results" className={styles.list}>
        {groups.map(({ name, entries: own }) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options, no fieldset
          <div key={name} role="group" aria-labelledby={`${listId}-${name}`}>
            <div id={`${listId}-${name}`} role="presentation" className={styles.group}>
              {name}
            </div>
            {own.map((entry) => (
              <Option
                key={entry.key}
                id={idOf(entry.key)}
                entry={entry}
                isActive={entry === active}
                onPoint={() => setChosen(entry.key)}
                onChoose={() => open(entry)}
              />
            ))}
          </div>
        ))}
      </div>
      {error && <ErrorBox error={error} />}
      <p role="status" className={styles.status}>
        {isBusy && 'Searching…'}
        {isEmpty && (
          <>
            Nothing found. Values are found by their beginning, ids by their first eight characters.
          </>
        )}
        {query === '' && entries.length === 0 && 'Type what you have at hand.'}
      </p>
    </Dialog>
  );
}

function Option(props: {
  readonly id: string;
  readonly entry: Entry;
  readonly isActive: boolean;
  readonly onPoint: () => void;
  readonly onChoose: () => void;
}) {
  const { id, entry, isActive } = props;
  const Icon = entry.icon;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the focus stays in the field, whose keys choose
    <div
      id={id}
      role="option"
      aria-selected={isActive}
      className={styles.option}
      onPointerMove={isActive ? undefined : props.onPoint}
      onClick={props.onChoose}
    >
      <Icon size={17} aria-hidden />
      <span className={styles.label}>{entry.label}</span>
      {entry.detail && <span className={styles.detail}>{entry.detail}</span>}
      {entry.beside && <span className={styles.beside}>{entry.beside}</span>}
    </div>
  );
}

/** The hits of the search; those of the text before stay until they have come. */
function useHits(query: string) {
  const { allowed } = useEngine();
  const rested = useRested(query);
  const maySearch = allowed.readAll || allowed.start;
  const { data, isFetching, error } = useRead('search.list', [{ q: rested, limit: HITS_MAX }], {
    enabled: maySearch && rested !== '',
    keepsBefore: true,
  });
  const isShown = maySearch && query !== '';
  return {
    hits: (isShown && data) || [],
    isBusy: isShown && (isFetching || rested !== query),
    error: isShown ? error : null,
  };
}

/** Pages and actions come first: they are there at once, and what is chosen does not move when the hits come. */
function useGroups(query: string, hits: readonly SearchHit[]): readonly Group[] {
  const { tenant } = useEngine();
  const pages = usePages();
  const actions = useActions();
  const of = (kind: SearchHit['kind']) =>
    hits.filter((hit) => hit.kind === kind).map((hit) => entryOfHit(hit));
  const groups: Group[] =
    query === ''
      ? [
          { name: 'Recent', entries: recentOf(tenant).map(entryOfRecent) },
          { name: 'Actions', entries: actions },
        ]
      : [
          { name: 'Pages', entries: matching(pages, query).slice(0, PAGES_SHOWN) },
          { name: 'Actions', entries: matching(actions, query) },
          { name: 'Instances', entries: of('instance') },
          { name: 'Sequences', entries: of('sequence') },
        ];
  return groups.filter(({ entries }) => entries.length > 0);
}

const entryOfRecent = ({ href, label, detail }: ReturnType<typeof recentOf>[number]): Entry => ({
  key: `recent ${href}`,
  icon: Clock,
  ...{ href, label, detail },
});

const MATCHES: Record<SearchHit['matched_by'], string> = {
  id: '',
  idempotency_key: 'key ',
  value: '',
  name: '',
};

function entryOfHit(hit: SearchHit): Entry {
  const { kind, id, sequence, version, state, created_at, matched_by, matched } = hit;
  if (kind === 'sequence') {
    const detail = `version ${version}, ${hit.namespace}`;
    return { key: id, icon: GitBranch, label: sequence, detail, href: `/sequences/${id}` };
  }
  return {
    key: id,
    icon: ListTree,
    label: `${MATCHES[matched_by]}${matched}`,
    detail: `${sequence} ${version}`,
    href: `/instances/${id}`,
    beside: (
      <>
        <ShortId id={id} />
        <Time at={created_at} />
        {state && <StateBadge state={state} />}
      </>
    ),
  };
}

function usePages(): readonly Entry[] {
  const maySee = useMaySee();
  return NAVIGATION.flatMap(({ label: words, items }) =>
    items
      .filter(({ href, isOfCluster }) => maySee(href) && !isOfCluster)
      .map(({ href, label, icon }) => ({ key: href, href, label, icon, words })),
  );
}

type Action = readonly [
  isAllowed: boolean,
  label: string,
  words: string,
  icon: LucideIcon,
  to: string | (() => void),
  detail?: string,
];

function useActions(): readonly Entry[] {
  const { allowed, who } = useEngine();
  const [theme, nextTheme] = useTheme();
  const failed = hrefOf('/instances', { state: 'failed' });
  const release = hrefOf('/releases', { new: 'yes' });
  const mayStart = allowed.start && allowed.readSequences;
  const actions: readonly Action[] = [
    [mayStart, 'Start an instance', 'run new create', Play, '/sequences'],
    [allowed.readAll || allowed.start, 'Failed instances', 'errors dead letters', ListTree, failed],
    [allowed.publish, 'New sequence', 'publish create definition', Plus, '/sequences/new'],
    [allowed.publish, 'New release', 'rollout canary create', Rocket, release],
    [who.is_root, 'Switch tenant', 'change', ArrowLeftRight, switchTenant],
    [true, 'Change theme', 'dark light mode', SunMoon, nextTheme, theme],
    [true, 'Keyboard shortcuts', 'keys help accessibility', Keyboard, listShortcuts],
    [!who.is_insecure, 'Sign out', 'log off leave', LogOut, signOut],
  ];
  return actions
    .filter(([isAllowed]) => isAllowed)
    .map(([, label, words, icon, to, detail]) => ({
      ...{ key: label.replaceAll(' ', '-'), label, words, icon, detail },
      ...(typeof to === 'string' ? { href: to } : { onChoose: to }),
    }));
}
