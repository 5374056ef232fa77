/** The diagrams, which are large and not needed for the first paint: each is loaded when first shown. */

import { laterIn } from '../components/later.tsx';

/** A sequence, or a run of it. */
export const FlowGraph = laterIn(() => import('./flow-graph.tsx'), 480);
/** The attempts of a run over time. */
export const Timeline = laterIn(() => import('./timeline.tsx'), 320);
/** The differences between two definitions. */
export const DefinitionDiff = laterIn(() => import('./diff-graph.tsx'), 480);
