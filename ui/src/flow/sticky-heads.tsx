/** The titles of open groups whose own title was scrolled out of view, at the top of the graph. */

import { useStore, ViewportPortal } from '@xyflow/react';
import { useView } from './faces.tsx';
import styles from './flow.module.css';
import type { Drawing } from './layout.ts';
import { LookIcon } from './look-icon.tsx';
import { stickyHeads } from './sticky.ts';

export function StickyHeads({ drawing }: { readonly drawing: Drawing }) {
  const { onSelect } = useView();
  const [left, top, zoom] = useStore(({ transform }) => transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const seen = { x: -left / zoom, y: -top / zoom, width: width / zoom, height: height / zoom };
  return (
    <ViewportPortal>
      {/* The titles themselves are in the graph. */}
      <div aria-hidden="true">
        {stickyHeads(drawing, seen).map(({ path, x, y, ...size }) => {
          const { block } = drawing.nodes.find((node) => node.path === path)!;
          return (
            <button
              key={path}
              type="button"
              tabIndex={-1}
              className={styles.sticky}
              style={{ transform: `translate(${x}px, ${y}px)`, ...size }}
              onClick={() => onSelect(path)}
            >
              <LookIcon look={block.look} size={14} />
              <span style={{ marginInlineStart: Math.max(0, seen.x - x) }}>{block.id}</span>
            </button>
          );
        })}
      </div>
    </ViewportPortal>
  );
}
