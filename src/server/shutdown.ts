/** Taking the engine apart within a limit of time, whatever one of its parts does. */

import type { Logger } from '../base/log.js';
import { within } from '../base/real-clock.js';

/** What was started, and has to be ended. */
export interface Part {
  readonly name: string;
  readonly stop: () => Promise<void>;
}

/** Every part may take this much longer than the shutdown as a whole, so that none hangs it. */
const STOP_GRACE_MS = 400;

/** One after the other. @param deadline on the monotonic clock */
export async function stopParts(
  parts: readonly Part[],
  deadline: number,
  log: Logger,
): Promise<void> {
  for (const { name, stop } of parts) {
    await within(deadline + STOP_GRACE_MS, stop()).catch((error: unknown) =>
      log.warn({ err: error, part: name }, 'did not stop cleanly'),
    );
  }
}
