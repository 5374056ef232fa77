/** A sequence, or a run of it, as a graph and as a list. */

import type { StepStatistics } from 'durable-workflow-engine-client';
import { type ReactNode, useMemo, useRef, useState } from 'react';
import { useKnownNow } from '../lib/now.ts';
import { runFace, statisticFace } from './faces.tsx';
import { FlowFrame } from './flow-frame.tsx';
import { statisticsOf } from './heat.ts';
import { TALL_LEAF } from './layout.ts';
import { type Definition, type Outline, outlineOf } from './outline.ts';
import { type RunFacts, statusesOf } from './run-states.ts';

export interface FlowProps {
  readonly definition: Definition;
  /** Undefined: shows the definition alone. */
  readonly run?: RunFacts | undefined;
  /** For screen readers, such as 'Flow of order-pipeline, version 3'. */
  readonly label: string;
  /** The ids from the outermost block on, as in `orders/charge`. Undefined: the selection is local state. */
  readonly selected?: string | null;
  readonly onSelect?: (path: string) => void;
  /** The run is open: elapsed times grow. */
  readonly isLive?: boolean;
  /** Runs of many instances, instead of one run. */
  readonly statistics?: readonly StepStatistics[] | undefined;
  /** Beside the tools of the graph. */
  readonly tools?: ReactNode;
}

export default function FlowGraph(props: FlowProps) {
  return props.isLive ? <Live {...props} /> : <Flow {...props} now={undefined} />;
}

function Live(props: FlowProps) {
  return <Flow {...props} now={useKnownNow()} />;
}

function Flow({
  definition,
  run,
  label,
  selected,
  onSelect,
  statistics,
  tools,
  now,
}: FlowProps & { now: number | undefined }) {
  const outline = useOutline(definition, run);
  const [own, setOwn] = useState<string | null>(null);
  const faceOf = useMemo(() => {
    if (statistics !== undefined) {
      const found = statisticsOf(outline, statistics);
      const faces = new Map([...found].map(([path, step]) => [path, statisticFace(step)]));
      return (path: string) => faces.get(path);
    }
    const statuses = run === undefined ? undefined : statusesOf(outline, run);
    return (path: string) => {
      const status = statuses?.get(path);
      return status === undefined ? undefined : runFace(status, now);
    };
  }, [outline, run, now, statistics]);
  return (
    <FlowFrame
      outline={outline}
      faceOf={faceOf}
      leafHeight={statistics === undefined ? undefined : TALL_LEAF}
      tools={tools}
      label={label}
      selected={selected === undefined ? own : selected}
      onSelect={onSelect ?? setOwn}
    />
  );
}

/** Stable while the blocks are the same, although every update of a run has a new tree. */
export function useOutline(definition: Definition, run: RunFacts | undefined): Outline {
  const known = useRef<{ definition: Definition; ids: string; outline: Outline }>(undefined);
  const ids = (run?.tree ?? []).map(({ block_id }) => block_id).join('\n');
  if (known.current?.definition !== definition || known.current.ids !== ids) {
    known.current = { definition, ids, outline: outlineOf(definition, run?.tree) };
  }
  return known.current.outline;
}
