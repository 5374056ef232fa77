/** What a shard gives to its rooms: each of them names what it takes. */

import type { Clock } from '../../src/base/clock.js';
import type { IdGenerator } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { HostDeps } from './host.js';
import type { Rows } from './loader.js';

export interface Kernel extends HostDeps {
  readonly loader: Rows;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly ids: IdGenerator;
  /** An id that falls on this shard. */
  readonly newId: () => string;
  readonly shard: number;
  readonly shards: number;
}
