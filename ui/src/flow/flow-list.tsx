/** The blocks as nested lists, for screen readers, narrow screens and users who prefer lists. */

import { ChevronDown, ChevronRight } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { useChunk } from '../components/chunk.tsx';
import { labelOf, useView } from './faces.tsx';
import styles from './flow-list.module.css';
import { isGroup } from './layout.ts';
import { LookIcon } from './look-icon.tsx';
import type { Outline, OutlineBlock } from './outline.ts';

export function FlowList(props: { readonly outline: Outline; readonly label: string }) {
  const { outline, label } = props;
  return (
    <ul className={styles.list} aria-label={label}>
      <Items blocks={[...outline.blocks, ...outline.hooks]} />
    </ul>
  );
}

const holds =
  (selected: string | null) =>
  ({ path }: OutlineBlock) =>
    selected === path || selected?.startsWith(`${path}/`);

/** Renders one chunk, extended to include the selected block or the block that contains it. */
function Items({ blocks }: { readonly blocks: readonly OutlineBlock[] }) {
  const { selected, target } = useView();
  const at = blocks.findIndex(holds(target ?? selected));
  const [shown, more] = useChunk(blocks.length, at + 1);
  return (
    <>
      {blocks.slice(0, shown).map((block) => (
        <Item key={block.path} block={block} />
      ))}
      {more && <li>{more}</li>}
    </>
  );
}

function Item({ block }: { readonly block: OutlineBlock }) {
  const { open, faceOf, selected, onSelect, onToggle, found, target } = useView();
  const row = useRef<HTMLDivElement>(null);
  const isTarget = target === block.path;
  useEffect(() => {
    if (isTarget) row.current?.scrollIntoView({ block: 'nearest' });
  }, [isTarget]);
  const face = faceOf(block.path);
  const isOpen = isGroup(block) && open.has(block.path);
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <li>
      <div
        ref={row}
        className={styles.row}
        data-tone={face?.tone ?? 'plain'}
        data-found={isTarget ? 'target' : found.has(block.path) ? '' : undefined}
      >
        {isGroup(block) ? (
          <button
            type="button"
            className={styles.toggle}
            aria-expanded={isOpen}
            aria-label={`${isOpen ? 'Close' : 'Open'} ${block.id}`}
            onClick={() => onToggle(block.path)}
          >
            <Chevron size={16} aria-hidden />
          </button>
        ) : (
          <span className={styles.noToggle} />
        )}
        <button
          type="button"
          className={styles.block}
          data-path={block.path}
          data-faint={face?.isFaint || undefined}
          aria-pressed={selected === block.path}
          onClick={() => onSelect(block.path)}
        >
          <span className="hidden-text">{labelOf(block, face)}</span>
          <span className={styles.words} aria-hidden>
            <LookIcon look={block.look} />
            <span className={face?.isStruck ? styles.struck : styles.id}>{block.id}</span>
            {block.isInjected && <span className={styles.tag}>injected</span>}
            {face === undefined ? (
              <span className={styles.note}>{block.detail}</span>
            ) : (
              <>
                <span className={styles.state}>
                  <face.icon size={13} aria-hidden />
                  {face.word}
                </span>
                <span className={styles.note}>
                  {[face.note, face.line, face.mark].filter(Boolean).join(' · ')}
                </span>
              </>
            )}
          </span>
        </button>
      </div>
      {isOpen && <Slots block={block} />}
    </li>
  );
}

function Slots({ block }: { readonly block: OutlineBlock }) {
  const { selected, target } = useView();
  const { slots } = block;
  const at = slots.findIndex(({ blocks }) => blocks.some(holds(target ?? selected)));
  const [shown, more] = useChunk(slots.length, at + 1);
  return (
    <ul className={styles.list}>
      {slots.slice(0, shown).map((slot) =>
        block.arrangement === 'body' ? (
          <Items key={slot.key} blocks={slot.blocks} />
        ) : (
          <li key={slot.key}>
            <span className={styles.slot}>{slot.label}</span>
            {slot.blocks.length === 0 ? (
              <span className={styles.nothing}>nothing</span>
            ) : (
              <ul className={styles.list}>
                <Items blocks={slot.blocks} />
              </ul>
            )}
          </li>
        ),
      )}
      {more && <li>{more}</li>}
    </ul>
  );
}
