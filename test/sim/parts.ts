/** What those who take part in a run work with; each names what it needs of it. */

import type { Random } from '../chaos/random.js';
import type { Api } from './api.js';
import type { SimSequence } from './clients.js';
import type { Cluster } from './cluster.js';
import type { Faults } from './faults.js';
import type { MemoryTables } from './memory-tables.js';
import type { World } from './world.js';

export interface Parts {
  readonly world: World;
  readonly api: Api;
  readonly faults: Faults;
  /** Of its own. */
  readonly random: Random;
  readonly tables: MemoryTables;
  readonly cluster: Cluster;
  /** How many shards an engine has. */
  readonly shards: number;
  /** The versions of one sequence, in order. */
  readonly versions: readonly SimSequence[];
  /** Asks until it is answered with one of these. */
  readonly insist: (wanted: readonly number[], ...call: Parameters<Api['call']>) => Promise<void>;
}
