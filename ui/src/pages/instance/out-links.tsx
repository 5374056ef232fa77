/** The links of an instance, or of one of its steps, to other systems. */

import { ExternalLink } from 'lucide-react';
import { useInfo } from '../../api/engine.tsx';
import { outLinksOf, traceIdOf } from '../../lib/out-links.ts';
import styles from './instance.module.css';
import type { Run } from './run.ts';

/** @param props.blockId of the step; absent: the instance */
export function OutLinks(props: { readonly run: Run; readonly blockId?: string }) {
  const { run, blockId } = props;
  const { id, tenant_id, namespace, traceparent } = run.instance;
  const links = outLinksOf(useInfo()?.ui_links ?? [], blockId === undefined ? 'instance' : 'step', {
    instance_id: id,
    tenant_id,
    namespace,
    sequence: run.named?.name,
    trace_id: traceIdOf(traceparent),
    block_id: blockId,
  });
  if (links.length === 0) return null;
  const what = blockId === undefined ? '' : ` about ${blockId}`;
  return (
    <nav className={styles.outLinks} aria-label={`Links to other systems${what}`}>
      {links.map(({ label, href }) => (
        <a key={label + href} href={href} target="_blank" rel="noreferrer">
          {label}
          <ExternalLink size={13} aria-label="opens in a new tab" />
        </a>
      ))}
    </nav>
  );
}
