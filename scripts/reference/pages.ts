/** Which page has which generated regions. */

import { authorizationRegions } from './authorization.js';
import { approvalRegions, blockRegions, stepRegions } from './blocks.js';
import { cliRegions } from './cli.js';
import { environmentRegions } from './environment.js';
import { errorRegions } from './errors.js';
import { failureRegions, waitRegions } from './failures.js';
import { filterRegions } from './filters.js';
import { functionRegions } from './functions.js';
import { handlerRegions } from './handlers.js';
import { hintRegions } from './hints.js';
import { tableRegions } from './kept-tables.js';
import { metricRegions } from './metrics.js';
import { operatorRegions } from './operators.js';
import { rawRequestRegions } from './raw-requests.js';
import type { Regions } from './regions.js';
import { repeatRegions } from './repeats.js';
import { roomRegions } from './rooms.js';
import { rootRegions } from './roots.js';
import { exampleText, HOOKS_EXAMPLE } from './sequence-examples.js';
import { stateRegions } from './states.js';

/** By the paths of the pages from the root of the repository. */
export function referencePages(): Readonly<Record<string, Regions>> {
  return {
    'docs/architecture.md': { ...roomRegions(), ...hintRegions(), ...tableRegions() },
    'docs/authorization.md': authorizationRegions(),
    'docs/cli.md': cliRegions(),
    'docs/reference/blocks.md': blockRegions(),
    'docs/reference/steps.md': stepRegions(),
    'docs/reference/approvals.md': approvalRegions(),
    'docs/reference/handlers.md': handlerRegions(),
    'docs/reference/expressions.md': {
      ...rootRegions(),
      ...operatorRegions(),
      ...functionRegions(),
      ...filterRegions(),
    },
    'docs/reference/instances.md': {
      ...stateRegions(),
      'hooks-example': exampleText('example-hooks', HOOKS_EXAMPLE),
    },
    'docs/reference/failures.md': failureRegions(),
    'docs/reference/explain.md': waitRegions(),
    'docs/reference/errors.md': { ...errorRegions(), ...repeatRegions() },
    'docs/reference/environment.md': environmentRegions(),
    'docs/reference/metrics.md': metricRegions(),
    'docs/reference/http.md': rawRequestRegions(),
  };
}
