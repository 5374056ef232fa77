/** Conditions that may make an instance behave unexpectedly (docs/reference/explain.md). */

import type { ExplanationWarning } from 'durable-workflow-engine-client';
import { TriangleAlert } from 'lucide-react';
import { Link } from 'wouter';
import styles from './now.module.css';

export function Warnings(props: {
  readonly warnings: readonly ExplanationWarning[] | undefined;
  readonly hrefOfBlock: (id: string) => string;
}) {
  const { warnings = [], hrefOfBlock } = props;
  if (warnings.length === 0) return null;
  return (
    <ul className={styles.warnings} aria-label="Warnings">
      {warnings.map(({ kind, block_id, summary }) => (
        <li key={`${kind} ${block_id}`} className={styles.warning}>
          <TriangleAlert size={16} aria-hidden />
          <span>
            {summary} <Link href={hrefOfBlock(block_id)}>Show {block_id}</Link>
          </span>
        </li>
      ))}
    </ul>
  );
}
