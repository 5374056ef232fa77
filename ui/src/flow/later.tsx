/** The diagrams, which are large and not needed for the first paint: each is loaded when first shown. */

import { type ComponentProps, Suspense } from 'react';
import { Place } from '../components/later.tsx';
import { later } from '../lib/load.ts';

const LazyFlowGraph = later(() => import('./flow-graph.tsx'));
const LazyTimeline = later(() => import('./timeline.tsx'));
const LazyDefinitionDiff = later(() => import('./diff-graph.tsx'));

/** A sequence, or a run of it. */
export function FlowGraph(props: ComponentProps<typeof LazyFlowGraph>) {
  return (
    <Suspense fallback={<Place height={480} />}>
      <LazyFlowGraph {...props} />
    </Suspense>
  );
}

/** The attempts of a run over time. */
export function Timeline(props: ComponentProps<typeof LazyTimeline>) {
  return (
    <Suspense fallback={<Place height={320} />}>
      <LazyTimeline {...props} />
    </Suspense>
  );
}

/** The differences between two definitions. */
export function DefinitionDiff(props: ComponentProps<typeof LazyDefinitionDiff>) {
  return (
    <Suspense fallback={<Place height={480} />}>
      <LazyDefinitionDiff {...props} />
    </Suspense>
  );
}
