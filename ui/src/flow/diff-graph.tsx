/** Two definitions in one diagram, with the change of every block, beside a list of the changes. */

import type { SemanticDiff } from 'durable-workflow-engine-client';
import { ArrowRightLeft, type LucideIcon, Minus, Pencil, Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Badge, type Tone } from '../components/badge.tsx';
import { useChunk } from '../components/chunk.tsx';
import { countOf } from '../lib/format.ts';
import {
  CHANGE_KINDS,
  type Change,
  type ChangeKind,
  definitionChanges,
} from './definition-diff.ts';
import styles from './diff-graph.module.css';
import type { Face } from './faces.tsx';
import { FlowFrame } from './flow-frame.tsx';
import type { Definition } from './outline.ts';

const LOOKS: Readonly<Record<ChangeKind, readonly [tone: Tone, icon: LucideIcon]>> = {
  added: ['ok', Plus],
  removed: ['danger', Minus],
  changed: ['warn', Pencil],
  moved: ['info', ArrowRightLeft],
};

export default function DefinitionDiff(props: {
  readonly before: Definition;
  readonly after: Definition;
  readonly label: string;
  /** The server's comparison; undefined until it is loaded. */
  readonly diff?: SemanticDiff | undefined;
}) {
  const { before, after, label, diff } = props;
  const { merged, changes, notes } = useMemo(
    () => definitionChanges(before, after, diff),
    [before, after, diff],
  );
  const [selected, setSelected] = useState<string | null>(null);
  const at = changes.findIndex(({ path }) => path === selected);
  const [shown, more] = useChunk(changes.length, at + 1);
  const faceOf = useMemo(() => {
    const faces = new Map(changes.map((change) => [change.path, changeFace(change)]));
    return (path: string) => faces.get(path);
  }, [changes]);
  if (changes.length === 0 && notes.length === 0) {
    return <p className="dim">Both versions have the same blocks.</p>;
  }
  return (
    <div className={styles.diff}>
      <Sums changes={changes} />
      <div className={styles.parts}>
        <FlowFrame
          outline={merged}
          faceOf={faceOf}
          label={label}
          selected={selected}
          onSelect={setSelected}
        />
        <ul className={styles.changes} aria-label="Changes">
          {notes.map(({ summary }) => (
            <li key={summary} className={styles.note}>
              {summary}
            </li>
          ))}
          {changes.slice(0, shown).map((change) => (
            <ChangeItem
              key={change.path}
              change={change}
              isSelected={change.path === selected}
              onSelect={setSelected}
            />
          ))}
          {more && <li>{more}</li>}
        </ul>
      </div>
    </div>
  );
}

function Sums({ changes }: { readonly changes: readonly Change[] }) {
  return (
    <p className={styles.sums}>
      {CHANGE_KINDS.map((kind) => [kind, changes.filter((change) => change.kind === kind)] as const)
        .filter(([, found]) => found.length > 0)
        .map(([kind, found]) => (
          <ChangeMark key={kind} kind={kind} text={`${countOf(found.length, 'block')} ${kind}`} />
        ))}
    </p>
  );
}

function ChangeItem(props: {
  readonly change: Change;
  readonly isSelected: boolean;
  readonly onSelect: (path: string) => void;
}) {
  const { change, isSelected, onSelect } = props;
  return (
    <li>
      <button
        type="button"
        className={styles.change}
        aria-pressed={isSelected}
        onClick={() => onSelect(change.path)}
      >
        <ChangeMark kind={change.kind} text={change.kind} />
        <code className={styles.path}>{change.path}</code>
      </button>
      {change.from !== undefined && change.kind === 'moved' && (
        <p className={styles.note}>
          was at <code>{change.from}</code>
        </p>
      )}
      {change.members.length > 0 && (
        <dl className={styles.members}>
          {change.members.map(({ member, before, after }) => (
            <div key={member}>
              <dt>{member}</dt>
              <dd>
                {before !== undefined && <del>{before}</del>}
                {after !== undefined && <ins>{after}</ins>}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {change.notes.map(({ summary }) => (
        <p key={summary} className={styles.note}>
          {summary}
        </p>
      ))}
    </li>
  );
}

function ChangeMark({ kind, text }: { readonly kind: ChangeKind; readonly text: string }) {
  const [tone, Icon] = LOOKS[kind];
  return (
    <Badge tone={tone} icon={Icon}>
      {text}
    </Badge>
  );
}

export function changeFace({ kind, from, members }: Change): Face {
  const [tone, icon] = LOOKS[kind];
  const names = members.map(({ member }) => member).join(', ');
  const note = kind === 'moved' ? [`from ${from}`, names].filter(Boolean).join(' · ') : names;
  return {
    ...{ tone, icon, word: kind, note },
    text: note === '' ? kind : `${kind}, ${note}`,
    isFaint: kind === 'removed',
    isStruck: kind === 'removed',
  };
}
